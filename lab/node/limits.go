package node

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"jaegerlab/lab/spec"
)

// NotInForce compares the limits asked for with those read back and names every difference, such
// as "memory: asked 1 GiB, in force none"; empty when all are in force. A nil read-back is a
// difference as soon as any limit was asked.
func NotInForce(asked spec.Limits, inForce *spec.Limits) []string {
	if inForce == nil {
		if describeLimits(asked) == "none" {
			return nil
		}
		return []string{"asked " + describeLimits(asked) + ", nothing could be read back"}
	}
	var differences []string
	tell := func(what, asked, got string) {
		differences = append(differences, fmt.Sprintf("%s: asked %s, in force %s", what, asked, got))
	}
	if len(asked.CPUSet) > 0 && !sameSet(asked.CPUSet, inForce.CPUSet) {
		tell("CPU set", formatCPUSet(asked.CPUSet), orNone(formatCPUSet(inForce.CPUSet)))
	}
	if asked.CPUShares > 0 && asked.CPUShares != inForce.CPUShares {
		tell("CPU shares", strconv.Itoa(asked.CPUShares), strconv.Itoa(inForce.CPUShares))
	}
	if asked.CPUs > 0 && math.Abs(asked.CPUs-inForce.CPUs) > 0.01*asked.CPUs {
		tell("CPUs", fmt.Sprintf("%g", asked.CPUs), orNone(trimZero(inForce.CPUs)))
	}
	if asked.MemoryBytes > 0 && asked.MemoryBytes != inForce.MemoryBytes {
		got := "none"
		if inForce.MemoryBytes > 0 {
			got = formatBytes(inForce.MemoryBytes)
		}
		tell("memory", formatBytes(asked.MemoryBytes), got)
	}
	return differences
}

func sameSet(a, b []int) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func trimZero(value float64) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf("%g", value)
}

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
