package load

import (
	"fmt"

	"jaegerlab/lab/protocol"
	"jaegerlab/lab/record"
)

// From where on something is at its limit.
const (
	rateReached  = 0.95 // of what was offered
	cpuFull      = 0.90 // of the CPUs that the load node may use
	lagLimitMS   = 20.0 // of a timer of 10 ms, in 99 of 100 cases below it
	socketErrors = 0.01 // of the requests
)

// judge says what held the load back, from figures of the load node alone. The generator's own
// limits come first: near them nothing that it says of the target is certain.
func judge(p record.Pace, totals protocol.Totals, client protocol.Protocol) (bound, why string) {
	share, missed := 1.0, ""
	if p.OfferedSpans != nil {
		if *p.OfferedSpans > 0 {
			share = float64(p.BegunSpans) / float64(*p.OfferedSpans)
		}
		if share >= rateReached {
			return record.RateReached, fmt.Sprintf("%.1f %% of the offered spans were begun", share*100)
		}
		missed = fmt.Sprintf("%.1f %% of the offered spans were begun, and ", share*100)
	}
	if why := ownLimit(p, totals); why != "" {
		return record.GeneratorBound, missed + why
	}
	switch {
	case client.Queue && totals.QueueDropped != nil && *totals.QueueDropped > 0:
		return record.TargetBound, missed + fmt.Sprintf("the client's queue was full and dropped %d spans: its sender waits "+
			"for an answer before it goes on", *totals.QueueDropped)
	case client.Queue || client.UDP:
		return record.GeneratorBound, missed + "workers wait for no answers: the pace is the client's own"
	case p.OfferedSpans == nil:
		return record.TargetBound, "closed loop: every worker waits for an answer before it goes on" + late(p)
	case p.NoFreeSlot != nil && *p.NoFreeSlot >= 1-share:
		return record.TargetBound, missed + fmt.Sprintf("no worker was free in %.0f %% of the samples: all %d waited for "+
			"answers; a higher CONCURRENCY lets more requests be in flight", *p.NoFreeSlot*100, p.Slots)
	}
	return record.GeneratorBound, missed + "workers were free: the generator did not keep up"
}

// late is a remark on a closed loop: it offers nothing that a late timer could miss, so timers that
// run late are no limit of the generator's, but they say that the machine had no CPU to spare.
func late(p record.Pace) string {
	if p.LagP99MS == nil || *p.LagP99MS < lagLimitMS {
		return ""
	}
	return fmt.Sprintf("; the load node's timers ran %.0f ms late: the machine had no CPU to spare", *p.LagP99MS)
}

// ownLimit names what of this machine was used up; "" = nothing.
func ownLimit(p record.Pace, totals protocol.Totals) string {
	switch {
	case p.CPUShare != nil && *p.CPUShare >= cpuFull:
		return fmt.Sprintf("the load node used %.2f of its %d CPUs", *p.CPUShare*float64(p.CPUs), p.CPUs)
	case p.OfferedSpans != nil && p.LagP99MS != nil && *p.LagP99MS >= lagLimitMS:
		return fmt.Sprintf("the load node's timers ran %.0f ms late: it got no CPU when it wanted it", *p.LagP99MS)
	case totals.Requests > 0 && float64(p.SocketErrors) >= socketErrors*float64(totals.Requests):
		return fmt.Sprintf("%d of %d requests failed on this machine's own sockets", p.SocketErrors, totals.Requests)
	}
	return ""
}
