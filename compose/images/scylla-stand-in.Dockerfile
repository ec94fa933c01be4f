# The stand-in for ScyllaDB: it takes ScyllaDB's command line and runs Cassandra. Not ScyllaDB: the
# label says so, and every table that shows a run with it.
ARG CASSANDRA
FROM ${CASSANDRA}
COPY program /usr/local/bin/scylla-stand-in
LABEL jaegerlab.stand-in="1"
EXPOSE 7000 9042 9180 10000
ENTRYPOINT ["/usr/local/bin/scylla-stand-in"]
CMD []
