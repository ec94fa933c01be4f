# The load node: the lab's own program, built from the checkout.
FROM scratch
COPY root/ /
COPY program /jaegerlab
EXPOSE 8080
ENTRYPOINT ["/jaegerlab", "load"]
