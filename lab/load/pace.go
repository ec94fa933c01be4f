package load

import (
	"math"
	"time"

	"jaegerlab/lab/spec"
)

// schedule is an open loop: which request is due when, as a pure function of the time since the
// start. What is late is not skipped, so nothing here knows how the target does.
type schedule struct {
	legs  []leg
	spans float64 // a request
}

// leg is a segment of the rate with what was offered before it.
type leg struct {
	spec.Segment
	startS float64
	before float64 // spans
}

// newSchedule returns nil for no rate: a closed loop.
func newSchedule(rate spec.Rate, spansPerRequest int) *schedule {
	if len(rate) == 0 {
		return nil
	}
	s := &schedule{spans: float64(spansPerRequest)}
	var startS, before float64
	for i, segment := range rate {
		s.legs = append(s.legs, leg{segment, startS, before})
		startS += segment.OverS
		before += (segment.From + segment.To) / 2 * segment.OverS
		if last := i == len(rate)-1; last && segment.OverS > 0 { // its rate holds on
			s.legs = append(s.legs, leg{spec.Segment{From: segment.To, To: segment.To}, startS, before})
		}
	}
	return s
}

// offered is how many spans are due until then.
func (s *schedule) offered(at time.Duration) float64 {
	t := at.Seconds()
	i := len(s.legs) - 1
	for i > 0 && s.legs[i].startS > t {
		i--
	}
	l := s.legs[i]
	t -= l.startS
	return l.before + l.From*t + l.slope()*t*t/2
}

// requests is how many requests are due until then.
func (s *schedule) requests(at time.Duration) int64 { return int64(s.offered(at)/s.spans + 1e-9) }

// due is when request number k (0, 1, ...) is: when the last of its spans is offered. Requests
// that are never due are due in 292 years.
func (s *schedule) due(k uint64) time.Duration {
	spans := (float64(k) + 1) * s.spans
	i := len(s.legs) - 1
	for i > 0 && s.legs[i].before >= spans {
		i--
	}
	l := s.legs[i]
	n := spans - l.before
	// The positive root of From*t + slope*t*t/2 = n, in the form that divides by no difference.
	root := l.From + math.Sqrt(max(l.From*l.From+2*l.slope()*n, 0))
	seconds := l.startS + 2*n/root
	if !(seconds < math.MaxInt64/float64(time.Second)) {
		return math.MaxInt64
	}
	return time.Duration(seconds * float64(time.Second))
}

func (l leg) slope() float64 {
	if l.OverS == 0 {
		return 0
	}
	return (l.To - l.From) / l.OverS
}
