package verify

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"jaegerlab/lab/ledger"
	"jaegerlab/lab/record"
	"jaegerlab/lab/trace"
)

const (
	loadFile     = "load.json"
	loadDone     = "done" // the load node's word for a load whose figures move no more
	maxReasons   = 20     // that a record names
	clockMayStep = ledger.MaxClockOffset
)

// loadSaid is what the load node said of its load, in load.json.
type loadSaid struct {
	State     string                   `json:"state"`
	Complete  bool                     `json:"complete"` // warm-up and window ran to their ends
	Generated map[trace.Phase][]uint64 `json:"generated"`
	Window    record.Window            `json:"window"`
	Sent      record.Sent              `json:"sent"`
	Request   *record.Latency          `json:"request"`
}

// load compares the record with what the load node said, and that with what became of each request.
func (d derive) load() {
	var said loadSaid
	if !d.read(loadFile, &said) {
		return
	}
	d.copied("window", loadFile, d.run.Window, said.Window)
	d.copied("sent", loadFile, d.run.Sent, said.Sent)
	d.copied("latencies.request", loadFile, d.run.Request, said.Request)
	if d.run.Facts != nil {
		d.copied("generated_per_worker", loadFile, d.run.Generated, said.Generated)
		d.copied("facts.window", loadFile, d.run.Facts.Window, said.Window)
	}
	d.same("window_s", d.run.WindowS, float64(said.Window.End-said.Window.Start)/1e9)
	if d.run.SendToStore != nil {
		d.percentiles("latencies.send_to_store", d.run.SendToStore)
	}
	if !d.listed(record.OutcomesName) || said.State != loadDone {
		d.note("its load was not heard out: what was sent stands as the load node said it")
		return
	}
	outcomes, err := record.ReadOutcomes(d.dir)
	if err != nil {
		d.problem("%v", err)
		return
	}
	r := requestsOf(outcomes)
	d.sent(said, r)
	d.pace(said, r)
	d.window(said, r)
}

// sent makes the totals of the measured load again. A request that was called off before it could
// leave is counted and has no outcome, and a client with a queue says several things of one
// request: then the outcomes give no number of requests.
func (d derive) sent(said loadSaid, r requests) {
	sent, unsent := d.run.Sent, d.run.Ledger.Unsent
	switch {
	case sent.QueueDropped != nil:
		if said.Complete && d.run.Facts != nil {
			d.same("sent.queue_dropped_spans", *sent.QueueDropped, unsent)
		}
	case unsent == 0:
		d.same("sent.requests", sent.Requests, r.requests)
		d.same("sent.retries", sent.Retries, r.retries)
	case sent.Requests < r.requests || sent.Retries < r.retries:
		d.problem("sent.requests and sent.retries are %d and %d, and there are outcomes of %d and %d",
			sent.Requests, sent.Retries, r.requests, r.retries)
	}
	d.same("sent.refused_reasons", sent.RefusedReasons, r.reasonList())
	d.latency("latencies.request", d.run.Request, r.response)
}

func (d derive) pace(said loadSaid, r requests) {
	pace := d.run.Sent.Pace
	if pace == nil {
		return
	}
	var begun, workers int64
	for _, spans := range said.Generated[trace.Measured] {
		begun += int64(spans)
		workers++
	}
	d.same("sent.pace.begun_spans", pace.BegunSpans, begun)
	d.same("sent.pace.slots", pace.Slots, workers)
	if length := time.Duration(said.Window.End - said.Window.Start); length > 0 {
		d.same("sent.pace.achieved_spans_per_s", pace.AchievedPerS, float64(begun)/length.Seconds())
	}
	d.latency("sent.pace.service", pace.Service, r.service)
}

// window bounds what is taken from the load node: nothing was sent before it, and it was no shorter
// than asked.
func (d derive) window(said loadSaid, r requests) {
	length := time.Duration(said.Window.End - said.Window.Start)
	if asked := time.Duration(d.run.Load.DurationS) * time.Second; said.Complete && length < asked-clockMayStep {
		d.problem("its window is %s long, and the load ran to its end of %s", length, asked)
	}
	if early := time.Duration(said.Window.Start - r.firstNS); r.requests > 0 && early > clockMayStep {
		d.problem("its first request was sent %s before the window began", early)
	}
}

// requests are the measured ones.
type requests struct {
	requests, retries int64
	firstNS           int64 // when the first one was sent
	reasons           map[string]int64
	response, service *hdrhistogram.Histogram
}

// requestsOf goes through outcomes in their order: those of one request of one worker follow one
// another and share the time it was sent at.
func requestsOf(outcomes []record.Outcome) requests {
	r := requests{reasons: map[string]int64{}, response: record.NewLatencyHistogram(), service: record.NewLatencyHistogram()}
	previous := map[uint32]int64{} // by worker: when its last request was sent
	for _, o := range outcomes {
		if o.Phase != trace.Measured {
			continue
		}
		r.requests++
		r.retries += int64(o.Attempts) - 1
		if r.firstNS == 0 || o.Sent < r.firstNS {
			r.firstNS = o.Sent
		}
		if o.Class != record.Acked {
			r.reasons[o.Code] += int64(o.Spans)
		}
		if o.Sent != previous[o.Worker] && o.Answered != 0 && o.Class != record.Unanswered {
			record.CountLatency(r.response, o.Answered-o.Intended)
			record.CountLatency(r.service, o.Answered-o.Sent)
		}
		previous[o.Worker] = o.Sent
	}
	return r
}

func (r requests) reasonList() (list []record.Reason) {
	for reason, spans := range r.reasons {
		list = append(list, record.Reason{Reason: reason, Spans: spans})
	}
	slices.SortFunc(list, func(a, b record.Reason) int {
		return cmp.Or(cmp.Compare(b.Spans, a.Spans), cmp.Compare(a.Reason, b.Reason))
	})
	return list[:min(len(list), maxReasons)]
}

// latency compares a distribution with the one of the outcomes, to the last count of it.
func (d derive) latency(path string, recorded *record.Latency, derived *hdrhistogram.Histogram) {
	if recorded == nil {
		d.same(path+".n", 0, derived.TotalCount())
		return
	}
	if hist := d.percentiles(path, recorded); hist != nil {
		if !hist.Equals(derived) {
			d.problem("%s has %d values, and the outcomes give %d others", path, hist.TotalCount(), derived.TotalCount())
		}
		d.taken.derived(path)
	}
}

// percentiles compares what is said of a distribution with its histogram; nil = that says nothing.
func (d derive) percentiles(path string, l *record.Latency) *hdrhistogram.Histogram {
	hist, err := l.Decode()
	if err != nil {
		d.problem("%s: %v", path, err)
		return nil
	}
	again, err := record.NewLatency(hist)
	if err != nil || again == nil {
		d.problem("%s of %d values has a histogram that holds none: %v", path, l.N, err)
		return nil
	}
	again.Histogram = l.Histogram
	d.same(path, l, again)
	return hist
}
