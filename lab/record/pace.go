package record

// What held a load's pace back.
const (
	GeneratorBound = "generator-bound" // the load node itself: its figures say nothing of the target
	TargetBound    = "target-bound"    // every worker waited for an answer, or the client's queue was full
	RateReached    = "rate reached"    // open loop: nothing did
)

// Pace says whether the measured load came as it was asked for, and what held it back.
type Pace struct {
	Rate         string   `json:"rate"`                 // spans/s asked, as RATE spells it; "" = closed loop
	OfferedSpans *int64   `json:"offered_spans"`        // due within the window; null in a closed loop, which offers nothing
	BegunSpans   int64    `json:"begun_spans"`          // whose request began within the window
	AchievedPerS float64  `json:"achieved_spans_per_s"` // begun / window
	LateSpans    *int64   `json:"late_spans"`           // of the begun: more than 10 ms after they were due; null in a closed loop
	LateMaxMS    *float64 `json:"late_max_ms"`

	// Service is answer - send; the run's own latency counts from when the request was due.
	Service *Latency `json:"service,omitempty"`

	CPUs         int      `json:"cpus"`          // that the load node may use at once
	CPUShare     *float64 `json:"cpu_share"`     // of them, used within the window; null where the system does not tell
	LagP99MS     *float64 `json:"lag_p99_ms"`    // a timer of 10 ms ran so late; null = not sampled
	LagMaxMS     *float64 `json:"lag_max_ms"`    //
	Slots        int      `json:"slots"`         // requests that can be in flight: one a worker
	FreeSlots    *float64 `json:"free_slots"`    // mean; null in a closed loop, where none is ever free
	NoFreeSlot   *float64 `json:"no_free_slot"`  // share of the samples
	SocketErrors int64    `json:"socket_errors"` // attempts that this machine could not make: no port, no descriptor, no buffer

	Bound string `json:"bound"`
	Why   string `json:"why"`

	UDP *UDPErrors `json:"udp,omitempty"` // over the window and its end; null for other clients and where nothing can be read
}

// UDPErrors are the kernel's counters of UDP packets in the load node's network namespace: a
// container has its own, plain processes share the machine's, the receiver's losses included.
type UDPErrors struct {
	InErrors    int64 `json:"in_errors"`    // packets that reached no socket, for any reason but a closed port
	ReceiveFull int64 `json:"receive_full"` // of these: the receiver's buffer was full
	SendFull    int64 `json:"send_full"`    // packets not sent: the sender's buffer was full
	NoPort      int64 `json:"no_port"`      // nobody listened
	Received    int64 `json:"received"`     // packets handed to sockets
	Sent        int64 `json:"sent"`
}

// Since returns how far the counters moved.
func (u UDPErrors) Since(before UDPErrors) UDPErrors {
	return UDPErrors{
		InErrors: u.InErrors - before.InErrors, ReceiveFull: u.ReceiveFull - before.ReceiveFull,
		SendFull: u.SendFull - before.SendFull, NoPort: u.NoPort - before.NoPort,
		Received: u.Received - before.Received, Sent: u.Sent - before.Sent,
	}
}
