# Prometheus, with the entrypoint, default arguments, user and data folder of the project's own image.
FROM scratch
COPY root/ /
COPY program /bin/prometheus
COPY --chown=65534:65534 empty/ /prometheus/
COPY --chown=65534:65534 empty/ /etc/prometheus/
WORKDIR /prometheus
USER 65534
EXPOSE 9090
VOLUME ["/prometheus"]
ENTRYPOINT ["/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
