package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPinnedJars(t *testing.T) {
	jars, err := parseJars(jarSums)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, j := range jars {
		if names[j.file()] {
			t.Errorf("%s is pinned twice", j.file())
		}
		names[j.file()] = true
	}
	if !names["cassandra-all-"+CassandraVersion+".jar"] {
		t.Errorf("cassandra-all of version %s is not in the list of %d jars", CassandraVersion, len(jars))
	}
	text, err := renderPom(jars)
	if err != nil {
		t.Fatal(err)
	}
	var back pom
	if err := xml.Unmarshal(text, &back); err != nil || len(back.Dependencies) != len(jars) {
		t.Errorf("the pom asks for %d jars, pinned are %d: %v", len(back.Dependencies), len(jars), err)
	}
	for _, d := range back.Dependencies {
		if len(d.Exclusions) != 1 || d.Exclusions[0].Group != "*" {
			t.Errorf("%s may bring in jars that are not pinned", d.Artifact)
		}
	}
}

func TestParseJarsRefuses(t *testing.T) {
	for _, line := range []string{"abc g:a:1", strings.Repeat("0", 64) + " g:a", strings.Repeat("0", 64)} {
		if _, err := parseJars([]byte("# head\n" + line)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q gave %v, want an error that names line 2", line, err)
		}
	}
}

// A folder with one changed, one absent and one foreign jar: each is named, with both sums.
func TestVerifyJarsNamesEveryMismatch(t *testing.T) {
	lib := t.TempDir()
	var jars []jar
	for _, name := range []string{"good", "changed", "absent"} {
		sum := sha256.Sum256([]byte(name))
		jars = append(jars, jar{sum: hex.EncodeToString(sum[:]), group: "g", artifact: name, version: "1"})
	}
	for name, data := range map[string]string{"good-1.jar": "good", "changed-1.jar": "planted", "foreign-1.jar": "x"} {
		if err := os.WriteFile(filepath.Join(lib, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := verifyJars(lib, jars)
	if err == nil {
		t.Fatal("a changed jar passed")
	}
	for _, part := range []string{"changed-1.jar: SHA-256 is ", "pinned is " + jars[1].sum, "absent-1.jar",
		"foreign-1.jar: not in"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not hold %q:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "good-1.jar") {
		t.Errorf("a good jar is named:\n%v", err)
	}
}

func TestDownloaded(t *testing.T) {
	line := "Downloaded from central: https://host/maven2/g/a/1/a-1.jar (60 kB at 1.2 MB/s)"
	if got := downloaded(line); got != "a-1.jar" {
		t.Errorf("got %q from Maven's line", got)
	}
	if got := downloaded("[INFO] ---------"); got != "" {
		t.Errorf("got %q from a line that is no download", got)
	}
}
