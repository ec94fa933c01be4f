package setup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Java is a Java that was run to see its version.
type Java struct {
	Path    string // of the java command
	Version string // "17.0.15"
	Major   int
}

// javaMajors are the versions Cassandra 5.0 runs on, the preferred one first. It sets a security
// manager at start: Java 18 to 23 need a flag for that, 24 and newer always refuse.
var javaMajors = []int{17, 11}

const javaLimit = 10 * time.Second

// lookup is what finding Java asks of the machine; tests give another one.
type lookup struct {
	os       string
	getenv   func(string) string
	lookPath func(string) (string, error)
	glob     func(string) ([]string, error)
	output   func(ctx context.Context, limit time.Duration, argv ...string) (string, error)
}

func thisMachine() lookup {
	return lookup{os: runtime.GOOS, getenv: os.Getenv, lookPath: exec.LookPath, glob: filepath.Glob, output: output}
}

// FindJava looks for a Java 17 (11 will do) in JAVA_HOME, PATH and the usual folders and runs
// each candidate to see what it is. The error says which version is needed and what was found.
func FindJava(ctx context.Context) (Java, error) { return thisMachine().java(ctx) }

func (l lookup) java(ctx context.Context) (Java, error) {
	var good []Java
	var seen []string
	for _, path := range l.javaCandidates(ctx) {
		java, err := l.askJava(ctx, path)
		if err != nil {
			seen = append(seen, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		if java.Major == javaMajors[0] {
			return java, nil
		}
		if slices.Contains(javaMajors, java.Major) {
			good = append(good, java)
			continue
		}
		seen = append(seen, fmt.Sprintf("%s is Java %s", path, java.Version))
	}
	if len(good) > 0 {
		return good[0], nil
	}
	if len(seen) == 0 {
		seen = []string{"no Java at all"}
	}
	return Java{}, fmt.Errorf("find Java for Cassandra %s: it needs Java 17 (11 works, 18 and newer do not); looked in "+
		"JAVA_HOME, PATH and %s and found: %s; install a Java 17 runtime, or set JAVA_HOME to one",
		CassandraVersion, strings.Join(l.javaFolders(), ", "), strings.Join(seen, "; "))
}

// javaFolders are patterns of the usual places.
func (l lookup) javaFolders() []string {
	folders := []string{"/usr/lib/jvm/*", "/usr/java/*", "/opt/java/*"}
	if l.os == "darwin" {
		folders = []string{
			"/Library/Java/JavaVirtualMachines/*/Contents/Home",
			"/opt/homebrew/opt/openjdk@*", "/usr/local/opt/openjdk@*",
		}
	}
	if home := l.getenv("HOME"); home != "" {
		folders = append(folders, filepath.Join(home, ".sdkman/candidates/java/*"))
	}
	return folders
}

func (l lookup) javaCandidates(ctx context.Context) []string {
	var paths []string
	add := func(path string) {
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if home := l.getenv("JAVA_HOME"); home != "" {
		add(filepath.Join(home, "bin", "java"))
	}
	if path, err := l.lookPath("java"); err == nil {
		add(path)
	}
	if l.os == "darwin" {
		if home, err := l.output(ctx, javaLimit, "/usr/libexec/java_home", "-v", "17"); err == nil {
			add(filepath.Join(strings.TrimSpace(home), "bin", "java"))
		}
	}
	for _, folder := range l.javaFolders() {
		found, err := l.glob(filepath.Join(folder, "bin", "java"))
		if err != nil {
			continue // only a malformed pattern is an error, and a folder's own name could be one
		}
		// Folders named after 17 go first: each candidate costs a start of a Java.
		slices.SortStableFunc(found, func(a, b string) int { return named17(b) - named17(a) })
		for _, path := range found {
			add(path)
		}
	}
	return paths
}

func named17(path string) int {
	if strings.Contains(path, "17") {
		return 1
	}
	return 0
}

var javaVersion = regexp.MustCompile(`version "(\d+)([^"]*)"`)

// askJava runs java -version: a folder's name proves nothing.
func (l lookup) askJava(ctx context.Context, path string) (Java, error) {
	text, err := l.output(ctx, javaLimit, path, "-version")
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		return Java{}, fmt.Errorf("java -version: %w %s", err, first)
	}
	return parseJava(path, text)
}

func parseJava(path, text string) (Java, error) {
	match := javaVersion.FindStringSubmatch(text)
	if match == nil {
		return Java{}, fmt.Errorf("java -version printed no version: %q", shorten(text, 80))
	}
	major, err := strconv.Atoi(match[1])
	if err != nil {
		return Java{}, fmt.Errorf("java -version: %w", err)
	}
	if major == 1 { // "1.8.0_392": before Java 9 the version began with 1
		fmt.Sscanf(match[2], ".%d", &major)
	}
	return Java{Path: path, Version: match[1] + match[2], Major: major}, nil
}
