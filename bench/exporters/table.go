package exporters

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"jaegerlab/bench"
	"jaegerlab/report"
)

func columns() []bench.Column {
	worst := func(title, unit, how string) bench.Column {
		return bench.Column{Column: report.Column{Title: title, How: how}, Of: func(r bench.Row) (float64, bool) {
			return worstOf(r, unit), len(r.Samples[unit]) > 0
		}}
	}
	moment := func(title string, how string, of func(mean, sd float64, n int) float64) bench.Column {
		value := func(r bench.Row) (float64, bool) {
			mean, sd := meanAndDeviation(r.Samples[perOp])
			value := of(mean, sd, len(r.Samples[perOp]))
			return value, !math.IsNaN(value)
		}
		return bench.Column{Column: report.Column{Title: title, Unit: "ms", How: how}, Decimals: 3, Of: value}
	}
	kib := bench.MedianOf("allocated", bytesPerOp, 2, "of the exporting process, per operation, in all; median")
	kib.Unit = "KB"
	inBytes := kib.Of
	kib.Of = func(r bench.Row) (float64, bool) { v, ok := inBytes(r); return v / 1024, ok }
	plain := func(title, unit string, decimals int, how string) bench.Column {
		c := bench.MedianOf(title, unit, decimals, how)
		c.Unit = ""
		return c
	}
	return []bench.Column{
		plain("batches", batchesPerOp, 0, "per operation"),
		plain("spans", createdPerOp, 0, "created, per operation"),
		plain("exported", exportedOp, 0, "spans of batches whose export did not fail, per operation; median"),
		moment("mean", "of an operation", func(mean, _ float64, _ int) float64 { return mean }),
		moment("error", "half of the 95 % confidence interval of the mean (Student's t); n/a with one operation",
			func(_, sd float64, n int) float64 { return studentT95(n-1) * sd / math.Sqrt(float64(n)) }),
		moment("std dev", "of the operations", func(_, sd float64, _ int) float64 { return sd }),
		{Column: report.Column{Title: "n", How: "operations measured; n/a where only what arrived was"},
			Of: func(r bench.Row) (float64, bool) {
				n := len(r.Samples[perOp])
				return float64(n), n > 0
			}},
		bench.MedianOf("time", perSpan, 0, "of an operation per exported span, last flush included; median"),
		kib,
		plain("allocations", allocsPerOp, 0, "per operation; median"),
		bench.MedianOf("rate", spansPerS, 0, "spans exported per second; median"),
		bench.MedianOf("wire", wirePerSpan, 1, "bytes of payload per span that arrived; n/a in memory"),
		plain("packets", packetsPerOp, 0, "packets or requests that arrived, per operation; n/a in memory"),
		worst("dropped", droppedPerOp, "spans that left and did not arrive, the worst operation; n/a in memory"),
		worst("kernel drops", kernelPerOp, "UDP packets that the kernel dropped meanwhile, in this network namespace, "+
			"the worst operation; n/a for other transports"),
		worst("failed", failedPerOp, "spans of batches that the exporter said it could not export, the worst operation"),
		plain("stored", storedPerOp, 0, "spans that a real Jaeger v2 had stored with equal content; n/a for black holes"),
	}
}

func worstOf(r bench.Row, unit string) (most float64) {
	for _, s := range r.Samples[unit] {
		most = max(most, s)
	}
	return most
}

// meanAndDeviation of samples; the deviation of a sample (n - 1). What there are too few for is NaN.
func meanAndDeviation(samples []float64) (mean, deviation float64) {
	if len(samples) == 0 {
		return math.NaN(), math.NaN()
	}
	for _, s := range samples {
		mean += s / float64(len(samples))
	}
	for _, s := range samples {
		deviation += (s - mean) * (s - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(samples)-1))
}

// studentT95 is the two-sided 95 % quantile of Student's t.
func studentT95(freedom int) float64 {
	table := []float64{math.NaN(), 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
		2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086}
	switch {
	case freedom < 1:
		return math.NaN()
	case freedom < len(table):
		return table[freedom]
	}
	f := float64(freedom)
	return 1.95996 + 2.3723/f + 2.8225/(f*f) // Cornish and Fisher's expansion, within 0.02 % from 21 on
}

// conclusions are the figures that the experiment is about; the last three lines are for
// whoever checks them.
func conclusions(rows []bench.Row) []string {
	find := func(prefix string, batches float64) (found bench.Row) {
		for _, row := range rows {
			if strings.HasPrefix(row.Name, prefix+"/batches=") && row.Median(batchesPerOp) == batches {
				found = row
			}
		}
		return found
	}
	var sizes []float64
	for _, row := range rows {
		if batches := row.Median(batchesPerOp); strings.HasPrefix(row.Name, "lab/udp/batches=") {
			sizes = append(sizes, batches)
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	slices.SortFunc(sizes, cmp.Compare[float64])
	var lines, allocated []string
	for _, batches := range sizes {
		own, client := find("lab/udp", batches), find("jaeger-client-go/udp", batches)
		lines = append(lines, fmt.Sprintf("%.0f batches over UDP: the lab's exporter allocates %.2f KB per operation, "+
			"jaeger-client-go %.0f KB; spans/s ratio %.1f", batches, own.Median(bytesPerOp)/1024,
			client.Median(bytesPerOp)/1024, bench.Ratio(own, client, spansPerS)))
		allocated = append(allocated, fmt.Sprintf("%.2f/%.2f at %.0f", own.Median(bytesPerOp)/1024,
			find("lab/http", batches).Median(bytesPerOp)/1024, batches))
	}
	most := sizes[len(sizes)-1]
	own, client := find("lab/udp", most), find("jaeger-client-go/udp", most)
	for _, row := range []bench.Row{own, client} {
		if dropped := worstOf(row, droppedPerOp); dropped > 0 {
			lines = append(lines, fmt.Sprintf("DROPPED: ratios count spans that left; of %s up to %.0f of %.0f did not arrive",
				row.Name, dropped, row.Median(createdPerOp)))
		}
	}
	return append(lines,
		"exporter allocation KB/op: "+strings.Join(allocated, ", ")+" batches (UDP/HTTP)",
		fmt.Sprintf("exporter ratio to jaeger-client-go UDP: %.2f", bench.Ratio(own, client, spansPerS)),
		fmt.Sprintf("wire bytes ratio: %.3f", own.Median(wirePerSpan)/client.Median(wirePerSpan)))
}
