package setup

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// machineWith is a machine on which these java commands exist, path -> what java -version prints;
// inPath is the one that PATH finds.
func machineWith(javas map[string]string, inPath string, environ map[string]string) lookup {
	return lookup{
		os:     "linux",
		getenv: func(name string) string { return environ[name] },
		lookPath: func(name string) (string, error) {
			if name == "java" && inPath != "" {
				return inPath, nil
			}
			return "", errors.New("not found")
		},
		glob: func(pattern string) ([]string, error) {
			var found []string
			for path := range javas {
				if ok, _ := filepath.Match(pattern, path); ok {
					found = append(found, path)
				}
			}
			return found, nil
		},
		output: func(_ context.Context, _ time.Duration, argv ...string) (string, error) {
			text, there := javas[argv[0]]
			if !there {
				return "", errors.New("no such file")
			}
			return text, nil
		},
	}
}

const (
	says24 = `openjdk version "24.0.1" 2025-04-15`
	says21 = `openjdk version "21.0.2" 2024-01-16 LTS`
	says17 = `openjdk version "17.0.15" 2025-04-15`
	says11 = `openjdk version "11.0.22" 2024-01-16`
	says8  = `java version "1.8.0_392"`
)

func TestFindJava(t *testing.T) {
	cases := []struct {
		name    string
		javas   map[string]string
		inPath  string
		environ map[string]string
		want    string
	}{
		{"17 in PATH", map[string]string{"/usr/bin/java": says17}, "/usr/bin/java", nil, "/usr/bin/java"},
		{"newer in PATH, 17 in the usual folder",
			map[string]string{"/usr/bin/java": says24, "/usr/lib/jvm/java-17-openjdk/bin/java": says17}, "/usr/bin/java", nil,
			"/usr/lib/jvm/java-17-openjdk/bin/java"},
		{"JAVA_HOME goes first", map[string]string{"/usr/bin/java": says17, "/own/bin/java": says17}, "/usr/bin/java",
			map[string]string{"JAVA_HOME": "/own"}, "/own/bin/java"},
		{"JAVA_HOME is too new", map[string]string{"/usr/bin/java": says17, "/own/bin/java": says21}, "/usr/bin/java",
			map[string]string{"JAVA_HOME": "/own"}, "/usr/bin/java"},
		{"11 when there is no 17", map[string]string{"/usr/bin/java": says21, "/usr/lib/jvm/java-11/bin/java": says11},
			"/usr/bin/java", nil, "/usr/lib/jvm/java-11/bin/java"},
		{"17 preferred to 11 in PATH", map[string]string{"/usr/bin/java": says11, "/usr/lib/jvm/j17/bin/java": says17},
			"/usr/bin/java", nil, "/usr/lib/jvm/j17/bin/java"},
		{"a folder named 17 that holds 21", map[string]string{"/usr/lib/jvm/java-17/bin/java": says21,
			"/usr/lib/jvm/other/bin/java": says17}, "", nil, "/usr/lib/jvm/other/bin/java"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			java, err := machineWith(c.javas, c.inPath, c.environ).java(t.Context())
			if err != nil || java.Path != c.want {
				t.Errorf("found %+v, %v; want %s", java, err, c.want)
			}
		})
	}
}

// Case 27: Java 21 and 24 only. The text says which is needed, where it looked and what it found.
func TestFindJavaRefusesNewerOnes(t *testing.T) {
	machine := machineWith(map[string]string{"/usr/bin/java": says24, "/usr/lib/jvm/java-21/bin/java": says21},
		"/usr/bin/java", nil)
	_, err := machine.java(t.Context())
	if err == nil {
		t.Fatal("a Java that can't run Cassandra was taken")
	}
	for _, part := range []string{"Java 17", "/usr/bin/java is Java 24.0.1",
		"/usr/lib/jvm/java-21/bin/java is Java 21.0.2",
		"JAVA_HOME", "/usr/lib/jvm/*"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not hold %q:\n%v", part, err)
		}
	}
	_, err = machineWith(nil, "", nil).java(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no Java at all") {
		t.Errorf("without any Java the error is %v", err)
	}
}

func TestParseJava(t *testing.T) {
	for text, major := range map[string]int{says24: 24, says17: 17, says8: 8, `openjdk version "17" 2021-09-14`: 17} {
		java, err := parseJava("java", text)
		if err != nil || java.Major != major {
			t.Errorf("%s: got %+v, %v; want major %d", text, java, err, major)
		}
	}
	if _, err := parseJava("java", "The operation couldn't be completed."); err == nil {
		t.Error("a text without a version was taken for a Java")
	}
}
