package frame

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Walk passes the value of every length-delimited field of this number in a protobuf message to
// see, in order, and steps over everything else: nothing is decoded or copied. It ends with an
// error where the message can't be walked any further, and with see's own.
func Walk(message []byte, field protowire.Number, see func(value []byte) error) error {
	for rest := message; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return broken(message, rest, n)
		}
		rest = rest[n:]
		if number != field || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
				return broken(message, rest, n)
			}
			rest = rest[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(rest)
		if n < 0 {
			return broken(message, rest, n)
		}
		if err := see(value); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func broken(message, rest []byte, code int) error {
	return fmt.Errorf("walk over a protobuf message: byte %d of %d: %w", len(message)-len(rest), len(message), protowire.ParseError(code))
}
