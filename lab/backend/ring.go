package backend

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// tokenRange is one piece of the ring: tokens above After up to Upto, and the node that owns it
// (the first replica; with replication factor 1 the only one).
type tokenRange struct {
	After, Upto int64
	Owner       int
}

func (r tokenRange) String() string { return fmt.Sprintf("(%d, %d]", r.After, r.Upto) }

// ring splits the whole token space into at least pieces ranges, each within one node's own
// range. tokens holds, per node, the tokens it says it has. Ranges cover (min, max]: no key of the
// Murmur3 partitioner has the least token.
func ring(tokens [][]string, pieces int) ([]tokenRange, error) {
	type mark struct {
		token int64
		owner int
	}
	var marks []mark
	for owner, texts := range tokens {
		for _, text := range texts {
			token, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read token %q of node %d: it is no number, so the partitioner is not Murmur3",
					text, owner+1)
			}
			marks = append(marks, mark{token, owner})
		}
	}
	if len(marks) == 0 {
		return nil, fmt.Errorf("split the ring: no node has a token")
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.token, b.token) })
	var ranges []tokenRange
	after := int64(math.MinInt64)
	for _, m := range marks {
		ranges = split(ranges, tokenRange{after, m.token, m.owner}, pieces)
		after = m.token
	}
	// What lies above the last token belongs to the owner of the first.
	return split(ranges, tokenRange{after, math.MaxInt64, marks[0].owner}, pieces), nil
}

// split appends r in pieces no wider than the token space / pieces.
func split(ranges []tokenRange, r tokenRange, pieces int) []tokenRange {
	if r.After >= r.Upto {
		return ranges
	}
	space := new(big.Int).Lsh(big.NewInt(1), 64)
	width := new(big.Int).Sub(big.NewInt(r.Upto), big.NewInt(r.After))
	// parts = ceil(width * pieces / 2^64)
	parts := new(big.Int).Mul(width, big.NewInt(int64(pieces)))
	parts.Add(parts, new(big.Int).Sub(space, big.NewInt(1))).Div(parts, space)
	n := max(parts.Int64(), 1)
	after := r.After
	for i := int64(1); i <= n; i++ {
		upto := new(big.Int).Mul(width, big.NewInt(i))
		upto.Div(upto, big.NewInt(n)).Add(upto, big.NewInt(r.After))
		ranges = append(ranges, tokenRange{after, upto.Int64(), r.Owner})
		after = upto.Int64()
	}
	return ranges
}
