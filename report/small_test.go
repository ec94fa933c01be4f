package report

import (
	"strings"
	"testing"

	"jaegerlab/lab/record"
)

// A probability is never zero, however small.
func TestSmallProbabilities(t *testing.T) {
	for p, want := range map[float64]string{1e-9: "p<0.001", 0.0004: "p<0.001", 0.0006: "p=0.001", 0.5: "p=0.500"} {
		if got := pText(p); got != want {
			t.Errorf("%v is spelt %q, want %q", p, got, want)
		}
	}
}

// A card of rounds that did not end and rounds that lost says both.
func TestCardSaysIncompleteAndLossy(t *testing.T) {
	r := tenRounds()
	r.Runs[0].Error = "interrupted"
	r.Runs[2].Verdict, r.Runs[2].Ledger.Missing = record.Lossy, 7
	all := arms(r)
	card := badges(all, Of(r), pickSource(all))[0]
	if card.Verdict != "incomplete" || !strings.Contains(card.Text, "not measured to the end (1 of 10 rounds incomplete)") ||
		!strings.Contains(card.Text, "lossy as well: 7 acked spans are missing") {
		t.Errorf("%+v", card)
	}
}
