#!/bin/bash
# nodetool of the node in this container.
set -euo pipefail
mapfile -t opens < <(grep -- '^--add-' /etc/cassandra/jvm.options)
exec java "${opens[@]}" -Xmx64m -Djava.net.preferIPv4Stack=true -Dcassandra.config=file:///etc/cassandra/cassandra.yaml \
	-Dlogback.configurationFile=logback-tools.xml -cp "/etc/cassandra:/opt/cassandra/lib/*" \
	org.apache.cassandra.tools.NodeTool "$@"
