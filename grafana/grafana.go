// Package grafana makes the lab's dashboards: what is asked of Prometheus (dashboards.go, with
// every metric's name from the package that owns it) and how Grafana wants it (json.go). The files
// in dashboards/ are rendered from it and provisioned by the compose stacks; tests parse every
// query, refuse names that nothing exports, and compare values with the lab's own table. It stands
// beside the flow and no step of the lab needs it.
package grafana

import "strings"

// Source is the uid of the provisioned data source, which every panel names.
const Source = "jaegerlab-prometheus"

// RateInterval is Grafana's variable for a window that holds at least four scrapes; whoever asks
// Prometheus directly puts a duration in its place (Query.At).
const RateInterval = "$__rate_interval"

// Dashboard is one page.
type Dashboard struct {
	UID    string // also the file's name
	Title  string
	About  string
	Panels []Panel
}

// Panel is one chart or figure.
type Panel struct {
	Title   string
	About   string // how to read it, and what it can't say
	Unit    string // Grafana's name of a unit
	Stat    bool   // a figure: the last value
	Stacked bool
	Queries []Query
}

// Query is one expression in PromQL.
type Query struct {
	Legend string // with {{label}}
	Expr   string
}

// At returns the expression with a fixed window for rates, such as "10s".
func (q Query) At(window string) string { return strings.ReplaceAll(q.Expr, RateInterval, window) }

// Total returns the expression with every rate replaced by the counter itself: what was counted in
// all, which can be set against a record.
func (q Query) Total() string {
	return strings.ReplaceAll(strings.ReplaceAll(q.Expr, "rate(", "("), "["+RateInterval+"])", ")")
}
