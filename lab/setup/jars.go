package setup

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// jarSums pins every jar of Cassandra by coordinates and SHA-256.
//
//go:embed cassandra-jars.sum
var jarSums []byte

// jarPlugin is the Maven plugin that copies dependencies, pinned so that Maven's own choice
// can't change what is fetched.
const jarPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

const jarLimit = 15 * time.Minute

// jar is one pinned jar.
type jar struct {
	sum                                  string
	group, artifact, version, classifier string
}

// file is its name in the lib folder, as Maven names it.
func (j jar) file() string {
	name := j.artifact + "-" + j.version
	if j.classifier != "" {
		name += "-" + j.classifier
	}
	return name + ".jar"
}

// parseJars reads lines of "sum  group:artifact:version[:classifier]"; # begins a comment.
func parseJars(data []byte) ([]jar, error) {
	var jars []jar
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		sum, coordinates, _ := strings.Cut(line, " ")
		parts := strings.Split(strings.TrimSpace(coordinates), ":")
		if len(sum) != 64 || len(parts) < 3 || len(parts) > 4 {
			return nil, fmt.Errorf("read the pinned jars: line %d is not a SHA-256 and coordinates: %q", n, line)
		}
		j := jar{sum: sum, group: parts[0], artifact: parts[1], version: parts[2]}
		if len(parts) == 4 {
			j.classifier = parts[3]
		}
		jars = append(jars, j)
	}
	return jars, lines.Err()
}

// exclusion keeps Maven from following a jar's own dependencies: all are in the list.
type exclusion struct {
	Group    string `xml:"groupId"`
	Artifact string `xml:"artifactId"`
}

type dependency struct {
	Group      string      `xml:"groupId"`
	Artifact   string      `xml:"artifactId"`
	Version    string      `xml:"version"`
	Classifier string      `xml:"classifier,omitempty"`
	Exclusions []exclusion `xml:"exclusions>exclusion"`
}

type pom struct {
	XMLName      xml.Name     `xml:"project"`
	Namespace    string       `xml:"xmlns,attr"`
	Model        string       `xml:"modelVersion"`
	Group        string       `xml:"groupId"`
	Artifact     string       `xml:"artifactId"`
	Version      string       `xml:"version"`
	Dependencies []dependency `xml:"dependencies>dependency"`
}

// renderPom asks for exactly the pinned jars.
func renderPom(jars []jar) ([]byte, error) {
	p := pom{Namespace: "http://maven.apache.org/POM/4.0.0", Model: "4.0.0",
		Group: "jaegerlab", Artifact: "cassandra-jars", Version: CassandraVersion}
	for _, j := range jars {
		p.Dependencies = append(p.Dependencies, dependency{Group: j.group, Artifact: j.artifact, Version: j.version,
			Classifier: j.classifier, Exclusions: []exclusion{{Group: "*", Artifact: "*"}}})
	}
	return xml.MarshalIndent(p, "", "  ")
}

// verifyJars checks a lib folder against the pinned list: every jar there with the right sum, and
// nothing else. All mismatches are named at once.
func verifyJars(lib string, jars []jar) error {
	var problems []error
	pinned := map[string]bool{}
	for _, j := range jars {
		pinned[j.file()] = true
		sum, err := fileHash(filepath.Join(lib, j.file()))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", j.file(), err))
		} else if sum != j.sum {
			problems = append(problems, fmt.Errorf("%s: SHA-256 is %s, pinned is %s", j.file(), sum, j.sum))
		}
	}
	entries, err := os.ReadDir(lib)
	if err != nil {
		return fmt.Errorf("check Cassandra's jars: %w", err)
	}
	for _, entry := range entries {
		if !pinned[entry.Name()] {
			problems = append(problems, fmt.Errorf("%s: not in the pinned list", entry.Name()))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("check Cassandra's jars in %s: %w", lib, errors.Join(problems...))
	}
	return nil
}

// jarFolder is where Cassandra's jars are kept.
func jarFolder(cache string) string {
	return filepath.Join(cache, "cassandra-"+CassandraVersion, "lib")
}

// jarsPresent tells whether verified jars of the current list are there: checking 66 MB of sums
// is done once, after the fetch, and left as a stamp beside the folder.
func jarsPresent(cache string) bool {
	stamp, err := os.ReadFile(jarFolder(cache) + ".sum")
	return err == nil && bytes.Equal(stamp, jarSums)
}

// fetchJars gets Cassandra's jars by Maven, checks them, and moves them in place.
func fetchJars(ctx context.Context, cache string, java Java, maven string, say Say) error {
	if jarsPresent(cache) {
		return nil
	}
	jars, err := parseJars(jarSums)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("fetch Cassandra's jars: %w; LAB_CACHE names another cache folder", err)
	}
	work, err := os.MkdirTemp(cache, "jars-*.tmp")
	if err != nil {
		return fmt.Errorf("fetch Cassandra's jars: %w", err)
	}
	defer os.RemoveAll(work)
	text, err := renderPom(jars)
	if err != nil {
		return fmt.Errorf("fetch Cassandra's jars: %w", err)
	}
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), text, 0o644); err != nil {
		return fmt.Errorf("fetch Cassandra's jars: %w", err)
	}
	lib := filepath.Join(work, "lib")
	err = job{
		what: "fetch Cassandra " + CassandraVersion + " (66 MB of jars)", hint: "about a minute", dir: work, limit: jarLimit,
		// Its repository of downloads is thrown away with the work folder: the user's own is left alone.
		argv: []string{maven, "-B", "-Dstyle.color=never", "-Dmaven.repo.local=" + filepath.Join(work, "repository"),
			jarPlugin, "-DoutputDirectory=" + lib},
		env:   []string{"JAVA_HOME=" + javaHome(java)},
		count: "files", brief: downloaded,
		isCount: func(line string) bool { return strings.HasPrefix(line, "Downloaded from") },
	}.run(ctx, say)
	if err != nil {
		return err
	}
	if err := verifyJars(lib, jars); err != nil {
		return err
	}
	if err := replaceFolder(lib, jarFolder(cache)); err != nil {
		return fmt.Errorf("keep Cassandra's jars: %w", err)
	}
	if err := writeFile(jarFolder(cache)+".sum", bytes.NewReader(jarSums), 0o644); err != nil {
		return fmt.Errorf("keep Cassandra's jars: %w", err)
	}
	say("fetched Cassandra %s, %d jars, all checksums right, in %s", CassandraVersion, len(jars),
		time.Since(started).Round(time.Second))
	return nil
}

// downloaded is the file name in Maven's line "Downloaded from NAME: URL (size at rate)"; "" for other lines.
func downloaded(line string) string {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Download") || fields[1] != "from" {
		return ""
	}
	return path.Base(fields[3])
}

// javaHome is the folder above bin/java, with links resolved: /usr/bin/java is one.
func javaHome(java Java) string {
	path, err := filepath.EvalSymlinks(java.Path)
	if err != nil {
		path = java.Path
	}
	return filepath.Dir(filepath.Dir(path))
}

func replaceFolder(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}
