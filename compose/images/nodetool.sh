#!/bin/bash
# nodetool of the node in this container.
exec java -Xmx64m -Djava.net.preferIPv4Stack=true -Dlogback.configurationFile=logback-tools.xml \
	-cp "/etc/cassandra:/opt/cassandra/lib/*" org.apache.cassandra.tools.NodeTool "$@"
