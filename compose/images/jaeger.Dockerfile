# Jaeger v2, with the entrypoint, user and ports of the project's own image.
FROM scratch
COPY root/ /
COPY program /cmd/jaeger/jaeger-linux
ENV JAEGER_LISTEN_HOST=0.0.0.0
EXPOSE 4317 4318 5778 5779 8888 9411 13132 13133 14250 14268 16686
VOLUME ["/tmp"]
ENTRYPOINT ["/cmd/jaeger/jaeger-linux"]
USER 10001
