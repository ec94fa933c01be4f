package report

import (
	_ "embed" // the page's template, style and script
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"jaegerlab/lab/record"
)

// HTMLName is the page in a record's folder.
const HTMLName = "report.html"

//go:embed page/report.html.tmpl
var pageTemplate string

//go:embed page/report.css
var pageStyle template.CSS

//go:embed page/report.js
var pageScript template.JS

// HTML writes the comparison as one page that needs no network: the document's first lines and
// tables, charts of what the record and its series hold, and what the figures rest on. series are
// by the runs' folders, tails the last lines of logs by their path; both may be nil. All foreign
// text is escaped for its place by html/template.
func HTML(w io.Writer, doc Document, r record.Record, series map[string]Series, tails map[string]string) error {
	parsed, err := template.New("report").Funcs(pageFunctions).Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("render the page: %w", err)
	}
	if err := parsed.Execute(w, pageOf(doc, r, series, tails)); err != nil {
		return fmt.Errorf("render the page: %w", err)
	}
	return nil
}

var pageFunctions = template.FuncMap{
	"lines": func(s string) []string { return strings.Split(s, "\n") },
	"add":   func(a, b float64) float64 { return a + b },
}

// htmlPage is what the template shows, in its order.
type htmlPage struct {
	Style    template.CSS
	Script   template.JS
	Title    string
	Complete bool
	Badges   []badge
	Judged   []Judgement
	Notes    []string
	Bars     *barChart
	Curves   []curveChart
	Flows    []flow
	Runs     []runCharts
	Tables   []Table
	Details  []Table
	Facts    []factList
	Settings []codeBlock
	Tails    []codeBlock
	Errors   []codeBlock
	How      []Column
}

// badge is one arm's verdict and its figure, at the top.
type badge struct {
	Arm, Verdict, Text   string
	Figure, Unit, Limits string // of the table Stored; "" where it has no such row
}

type factList struct {
	Title string
	Items []fact
}

type fact struct{ Name, Value string }

type codeBlock struct{ Title, Text string }

func pageOf(doc Document, r record.Record, series map[string]Series, tails map[string]string) htmlPage {
	all := arms(r)
	s := pickSource(all)
	p := htmlPage{
		Style: pageStyle, Script: pageScript, Title: doc.Title, Complete: r.Complete, Judged: doc.Judgements,
		Badges: badges(all, doc, s), Bars: barsOf(all, s), Curves: curvesOf(all), Flows: flowsOf(all),
		Facts: facts(r), Settings: settingBlocks(r), Tails: tailBlocks(r, tails), Errors: errorBlocks(r),
	}
	for _, note := range doc.Notes {
		if !slices.ContainsFunc(doc.Judgements, func(j Judgement) bool { return j.Sentence == note || j.Fairness == note }) {
			p.Notes = append(p.Notes, note)
		}
	}
	for _, run := range r.Runs {
		if charts, ok := chartsOf(run, series[run.Folder]); ok {
			p.Runs = append(p.Runs, charts)
		}
	}
	seen := map[string]bool{}
	for _, t := range doc.Tables {
		if t.Detail {
			p.Details = append(p.Details, t)
		} else {
			p.Tables = append(p.Tables, t)
		}
		for _, c := range t.Columns {
			if c.How != "" && !seen[c.Name()+c.How] {
				seen[c.Name()+c.How] = true
				p.How = append(p.How, c)
			}
		}
	}
	return p
}

// badges say each arm's worst verdict with the number that decides it, and its headline.
func badges(all []arm, doc Document, s source) (list []badge) {
	for i, a := range all {
		b := badge{Arm: clean(a.name)}
		if a.asked().Engine.StandIn {
			b.Arm += " (STAND-IN)"
		}
		words := map[string]int{}
		missing, lossy := int64(0), 0
		for _, run := range a.runs {
			word := string(run.Verdict)
			if !measured(run) {
				word = "incomplete"
			}
			words[word]++
			if run.Verdict == record.Lossy {
				missing += run.Ledger.Missing
				lossy++
			}
		}
		for _, word := range []string{"incomplete", string(record.Lossy), string(record.Unknown), string(record.Whole)} {
			if words[word] > 0 && b.Verdict == "" {
				b.Verdict = word
			}
		}
		switch {
		case b.Verdict == string(record.Whole):
			b.Text = "nothing that was acked is missing"
		case b.Verdict == string(record.Lossy):
			b.Text = fmt.Sprintf("%s acked spans are missing", whole(missing).Text)
		case b.Verdict == string(record.Unknown):
			b.Text = "it can't be told whether anything is missing"
		default:
			b.Text = "not measured to the end"
		}
		if len(a.runs) > 1 {
			b.Text += fmt.Sprintf(" (%d of %d rounds %s)", words[b.Verdict], len(a.runs), b.Verdict)
		}
		if b.Verdict == "incomplete" && lossy > 0 {
			b.Text += fmt.Sprintf("; lossy as well: %s acked spans are missing", whole(missing).Text)
		}
		b.headline(doc, i, s)
		list = append(list, b)
	}
	return list
}

// headline takes the figures of the arm's row in the first table, so that the two can't disagree.
func (b *badge) headline(doc Document, i int, s source) {
	if len(doc.Tables) == 0 || i >= len(doc.Tables[0].Rows) {
		return
	}
	for j, c := range doc.Tables[0].Columns {
		cell := doc.Tables[0].Rows[i][j]
		switch c.Title {
		case colPerSecond.Title:
			b.Figure, _, _ = strings.Cut(cell.Text, "\n")
			b.Unit = "spans/s " + s.column.Title
		case colLimit.Title:
			b.Limits = cell.Plain
		}
	}
}
