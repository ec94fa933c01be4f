package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// Segment is a part of an offered load: the rate goes from one value to the other in a straight line.
type Segment struct {
	From, To float64 // spans per second, of all workers together
	OverS    float64 // seconds
}

// Rate is an offered load over time. Its segments follow one another; after the last one its rate
// holds on. No segments: nothing is offered, workers send back to back.
type Rate []Segment

// maxRate is far above what one machine sends, and low enough for exact arithmetic.
const maxRate = 1e9

const acceptedRate = "spans/s (1 to 1000000000), or from:to:over_s, several of them separated by commas"

// ParseRate reads the spelling of RATE: "5000", or segments "from:to:over_s" separated by commas
// ("0:5000:30,5000:5000:60"); a plain number at the end is a step that holds on. "" is no rate.
func ParseRate(text string) (Rate, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	words := strings.Split(text, ",")
	var rate Rate
	var most float64
	for i, word := range words {
		segment, err := parseSegment(strings.TrimSpace(word), i == len(words)-1)
		if err != nil {
			return nil, problem("RATE", text, err.Error()+"; accepted: "+acceptedRate)
		}
		most = max(most, segment.From, segment.To)
		rate = append(rate, segment)
	}
	if most < 1 {
		return nil, problem("RATE", text, "it never offers a span; accepted: "+acceptedRate)
	}
	if last := rate[len(rate)-1].To; last == 0 && len(rate) == 1 && rate[0].From == 0 {
		return nil, problem("RATE", text, "it never offers a span; accepted: "+acceptedRate)
	}
	return rate, nil
}

func parseSegment(word string, last bool) (Segment, error) {
	parts := strings.Split(word, ":")
	var numbers []float64
	for _, part := range parts {
		number, err := strconv.ParseFloat(part, 64)
		if err != nil || !(number >= 0 && number <= maxRate) { // also refuses NaN
			return Segment{}, fmt.Errorf("%q is not a number from 0 to %.0f", part, float64(maxRate))
		}
		numbers = append(numbers, number)
	}
	switch {
	case len(numbers) == 1 && last:
		return Segment{From: numbers[0], To: numbers[0]}, nil
	case len(numbers) == 1:
		return Segment{}, fmt.Errorf("%q does not say how long it lasts and is not the last", word)
	case len(numbers) == 3 && numbers[2] > 0:
		return Segment{From: numbers[0], To: numbers[1], OverS: numbers[2]}, nil
	}
	return Segment{}, fmt.Errorf("%q is not from:to:over_s with a time above 0", word)
}

// Spans is how many are offered in so many seconds from the start.
func (r Rate) Spans(seconds float64) (spans float64) {
	for i, segment := range r {
		over := min(segment.OverS, seconds)
		if i == len(r)-1 && segment.OverS == 0 {
			over = seconds // a plain number holds on
		}
		if over <= 0 {
			break
		}
		reached := segment.To
		if over < segment.OverS {
			reached = segment.From + (segment.To-segment.From)*over/segment.OverS
		}
		spans += (segment.From + reached) / 2 * over
		seconds -= over
	}
	if len(r) > 0 && r[len(r)-1].OverS > 0 {
		spans += r[len(r)-1].To * max(seconds, 0) // the last one's rate holds on
	}
	return spans
}

// checkRate refuses a rate of which the window would see nothing, or not every part.
func (s Spec) checkRate(refuse refusal) error {
	rate, err := ParseRate(s.Load.Rate)
	if err != nil || rate == nil {
		return err
	}
	window, startS := float64(s.Load.DurationS), 0.0
	for i, segment := range rate {
		if i > 0 && startS >= window {
			refuse("RATE", s.Load.Rate, "its part %d begins after %g s, and the window ends after %g s; raise DURATION_S or leave it out",
				i+1, startS, window)
			return nil
		}
		startS += segment.OverS
	}
	request := (s.Load.SpansCount + 1) * max(s.Load.TracesPerRequest, 1)
	if offered := rate.Spans(window); offered < float64(request) {
		refuse("RATE", s.Load.Rate, "it offers %.1f spans in a window of %g s, and one request has %d: nothing would be sent; "+
			"raise RATE or DURATION_S, or lower SPANS_COUNT or TRACES_PER_REQUEST", offered, window, request)
	}
	return nil
}
