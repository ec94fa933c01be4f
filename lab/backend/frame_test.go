package backend

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSupported(t *testing.T) {
	got, err := parseSupported(multimap(scyllaSupported))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(scyllaSupported, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseSupported([]byte{0, 2, 0, 1, 'a'}); err == nil {
		t.Error("half a body is no error")
	}
}

func TestParseError(t *testing.T) {
	got, want := parseError(cqlError(0x0A, "unsupported version")), "error 0x000a: unsupported version"
	if got != want {
		t.Errorf("parseError() = %q; want %q", got, want)
	}
	for _, body := range [][]byte{nil, {0, 0, 0, 1}, {0, 0, 0, 1, 0, 9, 'x'}} {
		if parseError(body) == "" {
			t.Errorf("parseError(%x) says nothing", body)
		}
	}
}

func TestReadFrameIsBounded(t *testing.T) {
	for name, frame := range map[string][]byte{
		"not CQL":  []byte("HTTP/1.1 400 Bad Request\r\n"),
		"too long": {0x84, 0, 0, 1, opcodeSupported, 0x7F, 0xFF, 0xFF, 0xFF},
		"cut":      {0x84, 0, 0, 1, opcodeSupported, 0, 0, 0, 9, 1},
	} {
		if opcode, body, err := readFrame(bytes.NewReader(frame)); err == nil {
			t.Errorf("%s: readFrame() = %#x, %x", name, opcode, body)
		}
	}
}

func FuzzParseSupported(f *testing.F) {
	f.Add(multimap(cassandraOptions))
	f.Add([]byte{0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, body []byte) {
		options, err := parseSupported(body)
		if err == nil && len(options) > len(body) {
			t.Errorf("%d options from %d bytes", len(options), len(body))
		}
	})
}
