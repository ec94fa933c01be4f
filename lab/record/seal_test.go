package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Any bit of record.json that changes breaks the seal; saving again makes a new one.
func TestSealSeesEveryBit(t *testing.T) {
	f := newFolder(t)
	r := example()
	r.Warnings = []string{`"seal": "` + noSeal + `"`} // text that looks like it
	if err := f.Save(r); err != nil {
		t.Fatal(err)
	}
	if err := CheckSeal(f.Dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir, "record.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] ^= 1 << (i % 8)
		if checkSeal(data) == nil {
			t.Fatalf("a changed bit in byte %d of %d went unseen", i, len(data))
		}
		data[i] ^= 1 << (i % 8)
	}
	if checkSeal(append(data, '\n')) == nil || checkSeal(data[:len(data)-1]) == nil || checkSeal(nil) == nil {
		t.Error("a longer, shorter or empty file went unseen")
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), `"seal"`, `"other"`, 2)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckSeal(f.Dir); err == nil || !strings.Contains(err.Error(), "it has none") {
		t.Errorf("without a seal: %v", err)
	}
	if err := f.Save(r); err != nil {
		t.Fatal(err)
	}
	if err := CheckSeal(f.Dir); err != nil {
		t.Error(err)
	}
}
