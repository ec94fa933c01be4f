package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The seal is the last field of record.json: the SHA-256 of the whole file with zeros in the
// seal's place. Raw facts have their checksums in the record; with the seal the record vouches
// for itself, and one file is still written in one step.
const (
	sealKey   = `"seal": "`
	sealChars = 2 * sha256.Size
)

var noSeal = string(bytes.Repeat([]byte{'0'}, sealChars))

// sealed fills in the seal of a record that was marshalled with noSeal. The key can't stand in any
// other text: a quotation mark inside a string is escaped.
func sealed(data []byte) []byte {
	at := bytes.LastIndex(data, []byte(sealKey+noSeal+`"`))
	if at < 0 {
		return data
	}
	sum := sha256.Sum256(data)
	out := bytes.Clone(data)
	hex.Encode(out[at+len(sealKey):], sum[:])
	return out
}

// CheckSeal says whether record.json below dir, the record's folder, is as it was saved, to the
// bit.
func CheckSeal(dir string) error {
	path := filepath.Join(dir, recordName)
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("check the seal: %w", err)
	}
	if err := checkSeal(data); err != nil {
		return fmt.Errorf("check the seal of %s: %w", path, err)
	}
	return nil
}

func checkSeal(data []byte) error {
	at := bytes.LastIndex(data, []byte(sealKey))
	if at < 0 || len(data) < at+len(sealKey)+sealChars {
		return errors.New("it has none: it was saved by an earlier lab, or changed")
	}
	at += len(sealKey)
	seal := string(data[at : at+sealChars])
	zeroed := bytes.Clone(data)
	copy(zeroed[at:], noSeal)
	if sum := sha256.Sum256(zeroed); hex.EncodeToString(sum[:]) != seal {
		return fmt.Errorf("its content has the SHA-256 %x and its seal says %s: it was changed after the run", sum, seal)
	}
	return nil
}
