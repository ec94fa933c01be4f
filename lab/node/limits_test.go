package node

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"jaegerlab/lab/spec"
)

// notInForce compares the limits asked for with those read back and names every difference, such
// as "memory: asked 1 GiB, in force none"; empty when all are in force. A nil read-back is a
// difference as soon as any limit was asked.
func notInForce(asked spec.Limits, inForce *spec.Limits) []string {
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

func trimZero(value float64) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf("%g", value)
}
