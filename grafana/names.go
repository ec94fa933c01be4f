package grafana

// Names that the lab neither exports nor reads elsewhere: node-exporter's, ScyllaDB's own and
// Prometheus's. ScyllaDB's are as in its sources at 6.2.3; some series are not shown while they are empty.
const (
	up = "up"

	hostCPU       = "node_cpu_seconds_total"
	hostLoad      = "node_load1"
	hostAvailable = "node_memory_MemAvailable_bytes"
	hostTotal     = "node_memory_MemTotal_bytes"
	hostWritten   = "node_disk_written_bytes_total"

	scyllaUtilization = "scylla_reactor_utilization"
	scyllaStalls      = "scylla_reactor_stalls"
	scyllaServed      = "scylla_transport_requests_served"
	scyllaShed        = "scylla_transport_requests_shed"
	scyllaWrites      = "scylla_database_total_writes"
	scyllaFailed      = "scylla_database_total_writes_failed"
	scyllaTimedOut    = "scylla_database_total_writes_timedout"
	scyllaFree        = "scylla_memory_free_memory"
	scyllaTotal       = "scylla_memory_total_memory"
)

var foreignNames = []string{
	up, hostCPU, hostLoad, hostAvailable, hostTotal, hostWritten,
	scyllaUtilization, scyllaStalls, scyllaServed, scyllaShed, scyllaWrites, scyllaFailed, scyllaTimedOut,
	scyllaFree, scyllaTotal,
}
