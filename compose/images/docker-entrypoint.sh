#!/bin/bash
# Starts Cassandra from its jars. Settings come from the environment variables of the official image:
# CASSANDRA_SEEDS, _CLUSTER_NAME, _LISTEN_ADDRESS (auto), _BROADCAST_ADDRESS, _RPC_ADDRESS,
# _BROADCAST_RPC_ADDRESS, _ENDPOINT_SNITCH, _DC, _RACK, _NUM_TOKENS, and MAX_HEAP_SIZE, JVM_OPTS,
# JVM_EXTRA_OPTS. HEAP_NEWSIZE is accepted and, as under G1 in the distribution's own script, not used.
set -euo pipefail

readonly conf=${CASSANDRA_CONF:-/etc/cassandra}
readonly lib=/opt/cassandra/lib
readonly data=/var/lib/cassandra
readonly uid=999 # the official image's user

# A bare list of options is meant for Cassandra; any other command runs as it is.
if [ $# -eq 0 ] || [[ $1 == -* ]]; then
	set -- cassandra "$@"
fi
if [ "$1" != cassandra ]; then
	exec "$@"
fi
shift

# setting KEY VALUE: one top-level line of cassandra.yaml. Values are quoted; a quote in one is doubled.
setting() {
	local quoted=${2//\'/\'\'}
	KEY=$1 VALUE=$quoted awk '
		index($0, ENVIRON["KEY"] ":") == 1 { print ENVIRON["KEY"] ": \047" ENVIRON["VALUE"] "\047"; done = 1; next }
		{ print }
		END { if (!done) print ENVIRON["KEY"] ": \047" ENVIRON["VALUE"] "\047" }
	' "$conf/cassandra.yaml" >"$conf/cassandra.yaml.new"
	mv "$conf/cassandra.yaml.new" "$conf/cassandra.yaml"
}

own_address() {
	local addresses
	addresses=$(hostname --all-ip-addresses 2>/dev/null || hostname --ip-address)
	echo "${addresses%% *}"
}

listen=${CASSANDRA_LISTEN_ADDRESS:-auto}
[ "$listen" != auto ] || listen=$(own_address)
broadcast=${CASSANDRA_BROADCAST_ADDRESS:-$listen}
[ "$broadcast" != auto ] || broadcast=$(own_address)

setting listen_address "$listen"
setting broadcast_address "$broadcast"
setting rpc_address "${CASSANDRA_RPC_ADDRESS:-0.0.0.0}"
setting broadcast_rpc_address "${CASSANDRA_BROADCAST_RPC_ADDRESS:-$broadcast}"
[ -z "${CASSANDRA_CLUSTER_NAME:-}" ] || setting cluster_name "$CASSANDRA_CLUSTER_NAME"
[ -z "${CASSANDRA_ENDPOINT_SNITCH:-}" ] || setting endpoint_snitch "$CASSANDRA_ENDPOINT_SNITCH"
[ -z "${CASSANDRA_NUM_TOKENS:-}" ] || sed -i "s/^num_tokens:.*/num_tokens: $CASSANDRA_NUM_TOKENS/" "$conf/cassandra.yaml"
seeds=${CASSANDRA_SEEDS:-$broadcast}
sed -i "s|^\( *- seeds:\).*|\1 '$seeds'|" "$conf/cassandra.yaml"
printf 'dc=%s\nrack=%s\n' "${CASSANDRA_DC:-dc1}" "${CASSANDRA_RACK:-rack1}" >"$conf/cassandra-rackdc.properties"

heap=(-XX:MaxRAMPercentage=50)
if [ -n "${MAX_HEAP_SIZE:-}" ]; then
	heap=("-Xms$MAX_HEAP_SIZE" "-Xmx$MAX_HEAP_SIZE")
fi
jvm=()
while read -r option; do
	case $option in '' | '#'*) ;; *) jvm+=("$option") ;; esac
done <"$conf/jvm.options"

options=()
for option in "$@"; do # -f (stay in the foreground) and -R (run as root) are how it runs anyway
	case $option in -f | -R) ;; *) options+=("$option") ;; esac
done

# The distribution preloads jemalloc where it finds it.
jemalloc=$(ldconfig -p | awk '/libjemalloc\.so\.2/ { print $NF; exit }')
if [ -n "$jemalloc" ]; then
	export LD_PRELOAD=$jemalloc
	jvm+=("-Dcassandra.libjemalloc=$jemalloc")
fi
mkdir -p "$conf/triggers"

export MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-4}
run=()
if [ "$(id -u)" = 0 ]; then
	chown -R "$uid:$uid" "$data" "$conf"
	run=(setpriv --reuid "$uid" --regid "$uid" --clear-groups)
fi
# JVM_OPTS and JVM_EXTRA_OPTS are lists of options separated by spaces, as in the official image.
# shellcheck disable=SC2086
exec "${run[@]}" java "${jvm[@]}" ${JVM_OPTS:-} "${heap[@]}" \
	-Dcassandra.config="file://$conf/cassandra.yaml" -Dlogback.configurationFile="file://$conf/logback.xml" \
	-Dcassandra.storagedir="$data" -Dcassandra.logdir="$data/logs" -Dcassandra.jmx.local.port=7199 \
	-Dcassandra-foreground=yes ${JVM_EXTRA_OPTS:-} "${options[@]}" \
	-cp "$conf:$lib/*" org.apache.cassandra.service.CassandraDaemon
