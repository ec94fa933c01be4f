package node

import (
	"fmt"
	"strconv"
	"strings"

	"jaegerlab/lab/spec"
)

// describeLimits spells limits for error texts.
func describeLimits(l spec.Limits) string {
	var words []string
	if len(l.CPUSet) > 0 {
		words = append(words, "CPU set "+formatCPUSet(l.CPUSet))
	}
	if l.CPUShares > 0 {
		words = append(words, fmt.Sprintf("%d CPU shares", l.CPUShares))
	}
	if l.CPUs > 0 {
		words = append(words, fmt.Sprintf("%g CPUs", l.CPUs))
	}
	if l.MemoryBytes > 0 {
		words = append(words, formatBytes(l.MemoryBytes)+" of memory")
	}
	return orNone(strings.Join(words, ", "))
}

// formatBytes spells a size in the unit that limits are given in.
func formatBytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// parseCPUSet reads a list such as "0-1,4".
func parseCPUSet(text string) ([]int, error) {
	var set []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if isRange && err == nil {
			to, err = strconv.Atoi(last)
		}
		if err != nil || to < from || to-from > 1<<16 {
			return nil, fmt.Errorf("read CPU set %q: not a list like 0-1,4", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			set = append(set, cpu)
		}
	}
	return set, nil
}

func formatCPUSet(set []int) string {
	words := make([]string, len(set))
	for i, cpu := range set {
		words[i] = strconv.Itoa(cpu)
	}
	return strings.Join(words, ",")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
