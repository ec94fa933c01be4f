# node_exporter, with the entrypoint and user of the project's own image.
FROM scratch
COPY root/ /
COPY program /bin/node_exporter
EXPOSE 9100
USER 65534
ENTRYPOINT ["/bin/node_exporter"]
