# The collector of Jaeger v1, with the entrypoint, user and ports of the project's own image.
FROM scratch
COPY root/ /
COPY program /go/bin/collector-linux
EXPOSE 4317 4318 9411 14250 14268 14269
ENTRYPOINT ["/go/bin/collector-linux"]
USER 10001
