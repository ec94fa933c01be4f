package stack

import "jaegerlab/lab/node"

// envV1 is the environment of a v1 collector beside its storage. Every port is named, so that
// nothing listens where the lab did not put it. Workers and queue are the defaults, spelled out
// so that the record has them: they hold for thrift over HTTP only. OTLP goes to a queue of its
// own that nothing configures, 10 consumers and 1,000 requests, which answers "queue is full"
// (cmd/collector/app/handler/otlp_receiver.go at v1.76.0).
func envV1(embedded bool) []string {
	env := []string{
		"ADMIN_HTTP_HOST_PORT=${ip}:${port.metrics}",
		"COLLECTOR_GRPC_SERVER_HOST_PORT=${ip}:${port.grpc}",
		"COLLECTOR_HTTP_SERVER_HOST_PORT=${ip}:${port.thrift-http}",
		"COLLECTOR_NUM_WORKERS=50",
		"COLLECTOR_OTLP_ENABLED=true",
		"COLLECTOR_OTLP_GRPC_HOST_PORT=${ip}:${port.otlp-grpc}",
		"COLLECTOR_OTLP_HTTP_HOST_PORT=${ip}:${port.otlp-http}",
		"COLLECTOR_QUEUE_SIZE=2000",
		"LOG_LEVEL=info",
		"METRICS_BACKEND=prometheus",
	}
	if embedded {
		env = append(env,
			"QUERY_GRPC_SERVER_HOST_PORT=${ip}:${port.query-grpc}",
			"QUERY_HTTP_SERVER_HOST_PORT=${ip}:${port.query}")
	}
	return env
}

func portsV1(embedded bool) []node.Port {
	ports := []node.Port{
		{Name: "otlp-grpc", Number: 4317}, {Name: "otlp-http", Number: 4318},
		{Name: "thrift-http", Number: 14268}, {Name: "grpc", Number: 14250}, {Name: "metrics", Number: 14269},
	}
	if embedded {
		ports = append(ports, node.Port{Name: "query", Number: 16686}, node.Port{Name: "query-grpc", Number: 16685})
	}
	return ports
}
