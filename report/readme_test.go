package report

import (
	"bytes"
	"context"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// The README's example is a real run: the first lines and the headline of the record in testdata,
// as report.md shows them.
func TestReadmeExample(t *testing.T) {
	rendering, err := Read("testdata/readme")
	if err != nil {
		t.Fatal(err)
	}
	r, doc := rendering.Record, rendering.Document
	m := &markdown{}
	m.line("From a real run of `make lab` (%s, lab %s), its host: %d CPUs, %s.", r.ID, r.Lab, r.Host.CPUs, escape(r.Host.CPUModel))
	m.line("")
	for _, note := range doc.Notes {
		m.line("- %s", escape(note))
	}
	headline := doc.Tables[0]
	headline.Title = ""
	m.table(headline)
	want := strings.Replace(m.String(), "\n\n## \n\n", "\n\n", 1)

	const readme = "../README.md"
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- example: begin -->\n", "<!-- example: end -->"
	before, rest, found := strings.Cut(string(data), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("README.md has no section example")
	}
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("README.md's example is stale: go test ./report -run Readme -update\n%s", cmp.Diff(want, got))
}

// The README's pictures are of the same run: report.html as Chromium shows it. They are not compared
// point by point, since fonts differ from machine to machine; with -update they are taken again.
func TestIntegrationReadmePictures(t *testing.T) {
	const most = 300_000
	pictures := map[string]chromedp.Action[[]byte]{
		"report.png":      chromedp.CaptureScreenshot(),
		"report-time.png": chromedp.Screenshot("section[aria-labelledby=h-time]"),
	}
	if *update {
		takePictures(t, pictures)
	}
	for name := range pictures {
		data, err := os.ReadFile(filepath.Join("testdata/readme", name))
		if err != nil {
			t.Errorf("%v; go test ./report -run Readme -update takes it", err)
			continue
		}
		if config, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || config.Width < 1000 || len(data) > most {
			t.Errorf("%s: %d points wide, %d bytes, want at most %d: %v", name, config.Width, len(data), most, err)
		}
		if readme, err := os.ReadFile("../README.md"); err != nil || !strings.Contains(string(readme), "report/testdata/readme/"+name) {
			t.Errorf("README.md does not show %s: %v", name, err)
		}
	}
}

func takePictures(t *testing.T, pictures map[string]chromedp.Action[[]byte]) {
	t.Helper()
	ctx := browser(t)
	r, err := Read("testdata/readme")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), HTMLName)
	var page bytes.Buffer
	if err := writePage(&page, r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1200, 1160), chromedp.Navigate((&url.URL{Scheme: "file", Path: path}).String())); err != nil {
		t.Fatal(err)
	}
	for name, take := range pictures {
		savePicture(t, ctx, filepath.Join("testdata/readme", name), take)
	}
}

// savePicture packs a picture as small as PNG gets.
func savePicture(t *testing.T, ctx context.Context, path string, take chromedp.Action[[]byte]) {
	t.Helper()
	taken, err := png.Decode(bytes.NewReader(value(t, ctx, take)))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&packed, taken); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
