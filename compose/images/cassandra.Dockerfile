# Apache Cassandra from its Maven jars on a Debian base with a Java 17 runtime. It takes the
# environment variables of the official image (docker-entrypoint.sh).
ARG BASE
FROM ${BASE}
COPY lib/ /opt/cassandra/lib/
COPY conf/ /etc/cassandra/
COPY bin/ /usr/local/bin/
ENV CASSANDRA_CONF=/etc/cassandra
EXPOSE 7000 7001 7199 9042
VOLUME ["/var/lib/cassandra"]
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["cassandra", "-f"]
