package protocol

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxReason = 200

// addresses are pairs like "127.0.0.1:40112->127.0.0.1:4317" with own port numbers.
var addresses = regexp.MustCompile(`\S+:\d+->\S+:\d+: `)

// reason makes a code that many requests share: one line, bounded, and without the number of the
// connection's own port, so that the record can count spans by reason.
func reason(what, detail string) string {
	detail = addresses.ReplaceAllString(strings.Join(strings.Fields(detail), " "), "")
	if detail != "" {
		what += ": " + detail
	}
	if len(what) > maxReason {
		what = strings.ToValidUTF8(what[:maxReason], "")
	}
	if !utf8.ValidString(what) {
		what = strings.ToValidUTF8(what, "?")
	}
	return what
}
