package report

import (
	"fmt"
	"slices"

	"jaegerlab/lab/record"
)

// flow is the ledger of one arm as a picture: what was generated, what was answered, what is stored.
type flow struct {
	ID, Title, Summary string
	Blocks             []block
	Bands              []ribbon
	Note               string
}

type block struct {
	X, Y, Height float64
	Class        string // kind of the block, for its colour
	Label        string
	LabelX       float64
	LabelY       float64
}

// ribbon joins two blocks: a path of the view box.
type ribbon struct {
	Path, Class, Label string
}

const (
	flowTop, flowHeight = 10.0, 150.0
	flowGap             = 14.0 // between blocks of a column: room for labels
	flowBlock           = 12.0
	flowLeast           = 1.5 // height of the smallest number that is not zero
)

var flowColumns = [3]float64{10, 240, 470}

// answers in the order they are drawn.
var answers = []string{"acked", "refused", "unanswered", "no_reply", "unsent"}

// flowsOf draws the ledgers of every arm, its rounds added.
func flowsOf(all []arm) (flows []flow) {
	for i, a := range all {
		cells, rounds := map[record.Cell]int64{}, 0
		for _, run := range a.measured() {
			if !accounted(run) {
				continue
			}
			rounds++
			for _, c := range run.Ledger.Cells {
				cells[record.Cell{Answer: c.Answer, Stored: c.Stored}] += c.Spans
			}
		}
		if rounds == 0 {
			continue
		}
		f := drawFlow(cells)
		f.ID, f.Title = fmt.Sprintf("flow-%d", i+1), clean(a.name)
		if rounds > 1 {
			f.Note = fmt.Sprintf("%d rounds together.", rounds)
		}
		if slices.ContainsFunc(a.measured(), missingIsBound) {
			f.Note += " Not everything could be read back: absent is an upper bound."
		}
		flows = append(flows, f)
	}
	return flows
}

func drawFlow(cells map[record.Cell]int64) flow {
	var total, stored, absent int64
	for c, n := range cells {
		total += n
		if c.Stored {
			stored += n
		} else {
			absent += n
		}
	}
	d := drawing{scale: (flowHeight - 4*flowGap) / max(float64(total), 1)}
	d.column(0, "generated", total, "generated")
	from := d.open["generated"]
	d.ends(stored, absent)
	for _, answer := range answers {
		in, out := cells[record.Cell{Answer: answer, Stored: true}], cells[record.Cell{Answer: answer}]
		if in+out == 0 {
			continue
		}
		d.column(1, answer, in+out, answer)
		d.join(from, d.open[answer], in+out, answer)
		d.join(d.open[answer], d.open["stored"], in, answer+" and stored")
		d.join(d.open[answer], d.open["absent"], out, answer+" and absent")
	}
	d.f.Summary = fmt.Sprintf("Of %s generated spans %s are stored and %s absent.", whole(total).Text, whole(stored).Text, whole(absent).Text)
	for _, answer := range answers {
		for _, isStored := range []bool{true, false} {
			if n := cells[record.Cell{Answer: answer, Stored: isStored}]; n > 0 {
				word := "absent"
				if isStored {
					word = "stored"
				}
				d.f.Summary += fmt.Sprintf(" %s and %s: %s.", answerText(answer), word, whole(n).Text)
			}
		}
	}
	return d.f
}

func answerText(answer string) string {
	if answer == "no_reply" {
		return "no reply"
	}
	return answer
}

// drawing puts blocks into three columns and joins them from the top down.
type drawing struct {
	f     flow
	scale float64
	next  [3]float64
	open  map[string]*joint
}

// joint is how far the two sides of a block are joined already.
type joint struct {
	x          float64
	left, gone float64 // next free position on the left and on the right
	class      string
}

func (d *drawing) height(n int64) float64 {
	if n == 0 {
		return 0
	}
	return max(float64(n)*d.scale, flowLeast)
}

func (d *drawing) column(i int, name string, n int64, class string) {
	if d.open == nil {
		d.open = map[string]*joint{}
		d.next = [3]float64{flowTop, flowTop, flowTop}
	}
	y := d.next[i]
	h := d.height(n)
	d.f.Blocks = append(d.f.Blocks, block{X: flowColumns[i], Y: round1(y), Height: round1(h), Class: class,
		Label:  answerText(name) + " " + whole(n).Text,
		LabelX: flowColumns[i] + flowBlock + 5, LabelY: round1(y + max(h/2, 5) + 4)})
	d.open[name] = &joint{x: flowColumns[i], left: y, gone: y, class: class}
	d.next[i] += max(h, 6) + flowGap
}

func (d *drawing) ends(stored, absent int64) {
	d.column(2, "stored", stored, "stored")
	d.column(2, "absent", absent, "absent")
}

// join draws a ribbon of n spans from the right side of one block to the left side of another.
func (d *drawing) join(from, to *joint, n int64, label string) {
	if n == 0 {
		return
	}
	h := d.height(n)
	x1, x2 := from.x+flowBlock, to.x
	middle := (x1 + x2) / 2
	y1, y2 := from.gone, to.left
	path := fmt.Sprintf("M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f L%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f Z",
		x1, y1, middle, y1, middle, y2, x2, y2, x2, y2+h, middle, y2+h, middle, y1+h, x1, y1+h)
	class := to.class
	if to.x == flowColumns[2] && to.class == "absent" && from.class != "acked" {
		class = from.class // lost and known to be: no alarm
	}
	d.f.Bands = append(d.f.Bands, ribbon{Path: path, Class: class, Label: answerText(label) + ": " + whole(n).Text})
	from.gone += h
	to.left += h
}
