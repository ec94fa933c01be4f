package trace

// Shape says which span of a trace is the parent of which. The zero value is Star.
type Shape string

// The shapes. Spans of a trace are numbered 0 (the root), 1, 2, ... in the order of their starts.
const (
	Star  Shape = "star"  // every child below the root, as the original
	Chain Shape = "chain" // every span below the one before it
	Tree  Shape = "tree"  // two children below each span, level by level
)

// Shapes lists them, the default first.
func Shapes() []Shape { return []Shape{Star, Chain, Tree} }

// Parent is the position of the parent of the span at a position above 0.
func (s Shape) Parent(position int) int {
	switch s {
	case Chain:
		return position - 1
	case Tree:
		return (position - 1) / 2
	default:
		return 0
	}
}

// Timing places a span in its trace: starts are one microsecond apart, a span without children
// lasts one microsecond and any other until its last descendant has ended. So every span lies
// within its parent.
func (s Shape) Timing(position, width int) (offsetUS, durationUS int64) {
	last := position
	switch {
	case position == 0 || s == Chain:
		last = width - 1
	case s == Tree:
		last = lastBelow(position, width)
	}
	return int64(position), int64(last - position + 1)
}

// lastBelow is the last descendant in a tree: level by level they are consecutive positions.
func lastBelow(position, width int) int {
	first, last := position, position
	for 2*first+1 < width {
		first, last = 2*first+1, min(2*last+2, width-1)
	}
	return last
}
