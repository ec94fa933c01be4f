package protocol

import (
	"fmt"

	"jaegerlab/lab/trace"
)

// Limits of a request that every receiver of the lab takes: gRPC servers refuse messages above
// 4 MiB, and the collector's queue is bounded at 2,000 spans: a request above that is refused
// for ever, one of half that size never needs the whole queue for itself.
const (
	MaxRequestBytes = 4<<20 - 16<<10
	MaxRequestSpans = 1000
)

// maxPool bounds the encoded requests of one worker, maxPools those of all: the load node of the
// original has 1 GiB of memory.
const (
	maxPool  = 64 << 20
	maxPools = 768 << 20
)

// encoder encodes count spans, the first of them standing in its trace where the span number
// first stands, and ending with an error where that one would.
type encoder func(content trace.Content, width int, first uint64, count int) *template

// wire is how one client writes its requests: an encoder, and what its receivers take.
type wire struct {
	client   string
	encode   encoder
	maxBytes int
	maxSpans int
}

// part is one request of a batch: the template of its spans from this one on.
type part struct {
	from int
	*template
}

// batch are the parts of so many traces that are sent together.
type batch []part

// pool are the encoded batches of one worker: batch number k is sent by pool[k mod len(pool)].
// One is enough, unless some spans end with an error: that is not patched, it is a field more.
type pool []batch

// plan encodes batches of whole traces and splits them into requests within the limits, in order
// and as equal as possible: traces stay whole where one fits. A single span that is too large is
// refused by name, with its size.
func (w wire) plan(content trace.Content, width, traces int) (pool, error) {
	per, err := w.spansPerRequest(content, width, traces)
	if err != nil {
		return nil, err
	}
	spans := width * traces
	entries := content.ErrorPeriod() / gcd(content.ErrorPeriod(), spans)
	if size := len(w.encode(content, width, 0, 1).bytes) * min(spans, per); size*entries > maxPool {
		return nil, fmt.Errorf("send over %s: %d %% of errors need %d different requests of %d bytes a worker; at most "+
			"%d MiB are kept; take another LAB_ERROR_PERCENT (10, 20, 25 or 50 repeat sooner) or fewer TRACES_PER_REQUEST",
			w.client, content.ErrorPercent, entries, size, maxPool>>20)
	}
	type layout struct{ position, count int }
	var made pool
	for k := range entries {
		same := map[layout]*template{}
		var parts batch
		for _, cut := range cuts(width, traces, per) {
			from, count := cut[0], cut[1]
			key := layout{from % width, count}
			if same[key] == nil || content.ErrorPeriod() > 1 {
				same[key] = w.encode(content, width, uint64(k*spans+from), count)
				same[key].fold(width)
			}
			parts = append(parts, part{from, same[key]})
		}
		made = append(made, parts)
	}
	return made, nil
}

// cuts lists the requests of a batch as {first span, spans}.
func cuts(width, traces, per int) (all [][2]int) {
	spread := func(from, units, most, size int) {
		requests := (units + most - 1) / most
		for i := range requests {
			first, end := units*i/requests, units*(i+1)/requests
			all = append(all, [2]int{from + first*size, (end - first) * size})
		}
	}
	if per >= width {
		spread(0, traces, per/width, width)
		return all
	}
	for trace := range traces {
		spread(trace*width, width, per, 1)
	}
	return all
}

// spansPerRequest is how many spans fit a request: what one costs is known from encoding two.
func (w wire) spansPerRequest(content trace.Content, width, traces int) (int, error) {
	per := min(width*traces, w.maxSpans)
	one := len(w.encode(content, width, 0, 1).bytes)
	errorBytes := 0 // a span that ends with an error is a little longer
	if content.ErrorPercent > 0 {
		errorBytes = 32
	}
	if one+errorBytes > w.maxBytes {
		return 0, fmt.Errorf("send over %s: one span with %d tags and %d resource attributes is a request of "+
			"%d bytes; receivers accept %d; lower TAGS_COUNT, LAB_TAG_LENGTH, LAB_EVENTS or LAB_RESOURCE_ATTRIBUTES",
			w.client, content.Tags, content.ResourceAttributes, one+errorBytes, w.maxBytes)
	}
	if width*traces > 1 {
		const growth = 16 // a longer message has longer length prefixes
		two := len(w.encode(content, max(width, 2), 0, 2).bytes)
		child := two - one + errorBytes
		if more := w.maxBytes - one - errorBytes - growth; more < 0 {
			per = 1
		} else {
			per = min(per, 1+more/child)
		}
	}
	return per, nil
}

// size is how much memory the encoded requests take, in bytes.
func (p pool) size() (bytes int) {
	seen := map[*template]bool{}
	for _, parts := range p {
		for _, part := range parts {
			if !seen[part.template] {
				seen[part.template] = true
				bytes += len(part.bytes)
			}
		}
	}
	return bytes
}

// fits refuses what so many workers can't keep in memory together.
func (p pool) fits(client string, workers int) error {
	size := p.size()
	if size*workers <= maxPools {
		return nil
	}
	return fmt.Errorf("send over %s: %d workers keep %d bytes of encoded requests each, %d MiB together; at most %d MiB "+
		"are kept; lower CONCURRENCY, TRACES_PER_REQUEST, TAGS_COUNT or LAB_TAG_LENGTH",
		client, workers, size, size*workers>>20, maxPools>>20)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
