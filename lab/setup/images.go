package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"jaegerlab/compose/images"
	"jaegerlab/lab/node"
)

// baseImage is a Debian with a Java 17 runtime, made by debootstrap.
const (
	baseImage = "jaegerlab/base:bookworm-jre17"
	baseSuite = "bookworm"
	// What the official Cassandra image has beside Java: jemalloc, which it preloads, and ps.
	basePackages = "openjdk-17-jre-headless,libjemalloc2,procps"
	baseLimit    = 20 * time.Minute
)

// BuildImages makes an image of every program that can be made on this machine, under the name
// jaegerlab/...; an image that is up to date is left alone. Images of Go programs need only the
// Go toolchain; Cassandra's needs root, debootstrap, and what its jars need. What can't be made is
// in the error, after everything else was made.
func BuildImages(ctx context.Context, say Say) error {
	unlock, err := lock(ctx, say)
	if err != nil {
		return err
	}
	defer unlock()
	return buildImages(ctx, say, programNames())
}

// buildImages makes images of these programs; the caller holds the lock.
func buildImages(ctx context.Context, say Say, names []string) error {
	b, err := newBuilder(say)
	if err != nil {
		return err
	}
	d, err := connect(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	var problems []error
	for _, name := range names {
		p, err := find(name)
		if err != nil {
			return err
		}
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(problems, ctx.Err())...)
		case p.local == "":
			continue // ScyllaDB: it comes from no package registry
		case name == Load:
			_, err = b.loadImage(ctx, d)
		case name == Cassandra:
			_, err = b.cassandraImage(ctx, d)
		case name == ScyllaStandIn:
			err = b.standInImage(ctx, d)
		default:
			err = b.programImage(ctx, d, p)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// ensureImage makes an image unless one of the same content is there, and removes the one it
// replaces unless a container uses it.
func (b builder) ensureImage(ctx context.Context, d *docker, p program, ref string, content []string,
	args map[string]string, parts []part) error {
	recipe, err := images.Files.ReadFile(p.recipe + ".Dockerfile")
	if err != nil {
		return fmt.Errorf("build image %s: %w", ref, err)
	}
	hash := contentHash(append(content, string(recipe))...)
	img, present, err := d.inspect(ctx, ref)
	if err != nil {
		return err
	}
	if present && img.labels[labelContent] == hash {
		return nil
	}
	started := time.Now()
	parts = append(parts, part{name: "Dockerfile", data: recipe, mode: 0o644})
	labels := map[string]string{labelContent: hash, labelImage: p.name}
	if err := d.buildImage(ctx, ref, labels, args, parts); err != nil {
		return err
	}
	if present {
		// Refused while a container uses it; then it costs space only.
		_, _ = d.api.ImageRemove(ctx, img.id, client.ImageRemoveOptions{PruneChildren: true})
	}
	b.say("made image %s in %s", ref, time.Since(started).Round(time.Second))
	return nil
}

// contentHash is a short hash over everything an image is made from.
func contentHash(parts ...string) string {
	sum := sha256.New()
	for _, text := range parts {
		fmt.Fprintf(sum, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// programImage puts a built program into an image made FROM scratch.
func (b builder) programImage(ctx context.Context, d *docker, p program) error {
	path, err := b.build(ctx, p, platform{"linux", d.daemon.Arch})
	if err != nil {
		return err
	}
	hash, err := fileHash(path)
	if err != nil {
		return fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	parts := append(skeleton(), part{name: "program", from: path, mode: 0o755})
	return b.ensureImage(ctx, d, p, p.localRef(), []string{hash}, nil, parts)
}

// loadImage makes the image of the load program, tagged by its content, and removes older ones.
func (b builder) loadImage(ctx context.Context, d *docker) (node.Binary, error) {
	p, err := find(Load)
	if err != nil {
		return node.Binary{}, err
	}
	path, err := b.build(ctx, p, platform{"linux", d.daemon.Arch})
	if err != nil {
		return node.Binary{}, err
	}
	hash, err := fileHash(path)
	if err != nil {
		return node.Binary{}, fmt.Errorf("build image of the load program: %w", err)
	}
	p.version = hash[:12]
	parts := append(skeleton(), part{name: "program", from: path, mode: 0o755})
	if err := b.ensureImage(ctx, d, p, p.localRef(), []string{hash}, nil, parts); err != nil {
		return node.Binary{}, err
	}
	d.removeOlder(ctx, p.local, p.localRef())
	img, present, err := d.inspect(ctx, p.localRef())
	if err != nil || !present {
		return node.Binary{}, fmt.Errorf("build image %s: it is not in the daemon after the build: %w", p.localRef(), err)
	}
	return node.Binary{Image: p.localRef(), Version: p.version,
		Source: p.localRef() + " " + img.id + ", built from the checkout"}, nil
}

// cassandraImage makes the base and on it Cassandra, with the configuration of lab/backend/conf.
func (b builder) cassandraImage(ctx context.Context, d *docker) (content string, err error) {
	p, err := find(Cassandra)
	if err != nil {
		return "", err
	}
	conf, err := cassandraConf(os.DirFS(filepath.Join(b.root, "lab", "backend", "conf")))
	if err != nil {
		return "", fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	entrypoint, err := images.Files.ReadFile("docker-entrypoint.sh")
	if err != nil {
		return "", fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	nodetool, err := images.Files.ReadFile("nodetool.sh")
	if err != nil {
		return "", fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	base, err := b.base(ctx, d)
	if err != nil {
		return "", fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	if err := b.jars(ctx); err != nil {
		return "", fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	parts, err := folderParts("lib/", jarFolder(b.cache))
	if err != nil {
		return "", fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	content = contentHash(base, string(jarSums), string(entrypoint), string(nodetool))
	for _, file := range conf {
		content = contentHash(content, file.name, string(file.data))
	}
	parts = append(append(parts, conf...),
		part{name: "bin/docker-entrypoint.sh", data: entrypoint, mode: 0o755},
		part{name: "bin/nodetool", data: nodetool, mode: 0o755})
	args := map[string]string{"BASE": baseImage}
	return content, b.ensureImage(ctx, d, p, p.localRef(), []string{content}, args, parts)
}

// standInImage puts the stand-in for ScyllaDB on the Cassandra image.
func (b builder) standInImage(ctx context.Context, d *docker) error {
	p, err := find(ScyllaStandIn)
	if err != nil {
		return err
	}
	cassandra, err := find(Cassandra)
	if err != nil {
		return err
	}
	below, err := b.cassandraImage(ctx, d)
	if err != nil {
		return fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	path, err := b.build(ctx, p, platform{"linux", d.daemon.Arch})
	if err != nil {
		return err
	}
	hash, err := fileHash(path)
	if err != nil {
		return fmt.Errorf("build image %s: %w", p.localRef(), err)
	}
	args := map[string]string{"CASSANDRA": cassandra.localRef()}
	parts := []part{{name: "program", from: path, mode: 0o755}}
	return b.ensureImage(ctx, d, p, p.localRef(), []string{below, hash}, args, parts)
}

// jars fetches Cassandra's jars for an image; Maven and a Java are needed for the fetch only.
func (b builder) jars(ctx context.Context) error {
	if jarsPresent(b.cache) {
		return nil
	}
	java, maven, err := javaAndMaven(ctx)
	if err != nil {
		return err
	}
	return fetchJars(ctx, b.cache, java, maven, b.say)
}

// base makes the Debian base if it is absent and returns its image id.
func (b builder) base(ctx context.Context, d *docker) (string, error) {
	hash := contentHash(baseSuite, basePackages)
	img, present, err := d.inspect(ctx, baseImage)
	if err != nil {
		return "", err
	}
	if present && img.labels[labelContent] == hash {
		return img.id, nil
	}
	tool, err := exec.LookPath("debootstrap")
	if err != nil || os.Geteuid() != 0 {
		return "", errors.New("make its Debian base: it needs root and debootstrap (apt-get install debootstrap); " +
			"or pull the public image: docker pull cassandra:5.0")
	}
	work, err := os.MkdirTemp(b.cache, "base-*.tmp")
	if err != nil {
		return "", fmt.Errorf("make the Debian base: %w", err)
	}
	defer os.RemoveAll(work)
	started := time.Now()
	root := filepath.Join(work, "root")
	err = job{
		what: "make the Debian base image", hint: "about a minute", dir: work, limit: baseLimit,
		// Its own mount namespace: /proc mounted in the new root ends with the command.
		argv: []string{"unshare", "--mount", tool, "--variant=minbase", "--include=" + basePackages, baseSuite, root},
		env:  []string{"DEBIAN_FRONTEND=noninteractive"}, // packages' scripts ask nothing
	}.run(ctx, b.say)
	if err != nil {
		return "", err
	}
	if err := d.importFolder(ctx, baseImage, map[string]string{labelContent: hash, labelImage: "base"}, root); err != nil {
		return "", err
	}
	b.say("made image %s in %s", baseImage, time.Since(started).Round(time.Second))
	img, _, err = d.inspect(ctx, baseImage)
	return img.id, err
}

// importFolder imports a root file system by tar, which keeps owners and modes.
func (d *docker) importFolder(ctx context.Context, ref string, labels map[string]string, root string) error {
	ctx, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	reader, writer := io.Pipe()
	defer reader.Close()
	var complaints bytes.Buffer
	tar := exec.CommandContext(ctx, "tar", "--numeric-owner", "--exclude=./proc/*", "--exclude=./sys/*",
		"--exclude=./dev/*", "--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*", "--exclude=./usr/share/doc/*",
		"--exclude=./usr/share/man/*", "--exclude=./usr/share/locale/*", "-C", root, "-c", ".")
	tar.Stdout, tar.Stderr = writer, &complaints
	tar.WaitDelay = time.Second
	done := make(chan error, 1)
	go func() {
		err := tar.Run()
		_ = writer.CloseWithError(err) // the reader gets the error
		done <- err
	}()
	err := d.importImage(ctx, ref, labels, reader)
	_ = reader.Close() // lets tar end when the daemon stopped reading
	if tarErr := <-done; tarErr != nil && err == nil {
		return fmt.Errorf("import image %s: tar: %w: %s", ref, tarErr, complaints.String())
	}
	return err
}

var (
	comment     = regexp.MustCompile(`(?m)^#.*\n`)
	labLine     = regexp.MustCompile(`(?m)^auto_snapshot: false.*$`)
	placeholder = regexp.MustCompile(`\$\{[^}]+\}|\{\{[^}]+\}\}`)
)

// cassandraConf turns the configuration of a plain process, package backend's, into the image's:
// fixed folders and ports, and addresses that the entrypoint sets from the environment.
func cassandraConf(conf fs.FS) ([]part, error) {
	yaml, err := fs.ReadFile(conf, "cassandra.yaml")
	if err != nil {
		return nil, fmt.Errorf("read Cassandra's configuration: %w", err)
	}
	text := strings.NewReplacer("${dir}", "/var/lib/cassandra", "${ip}", "localhost", "${port.storage}", "7000",
		"${port.cql}", "9042", "{{.Cluster}}", "Test Cluster", "{{.Seed}}", "127.0.0.1").Replace(string(yaml))
	text = comment.ReplaceAllString(text, "")                    // it speaks of plain processes
	text = labLine.ReplaceAllString(text, "auto_snapshot: true") // as shipped; a process has less disk to spare
	if unknown := placeholder.FindString(text); unknown != "" {
		return nil, fmt.Errorf("render Cassandra's configuration for the image: cassandra.yaml has a placeholder "+
			"that package setup does not know: %s", unknown)
	}
	parts := []part{{name: "conf/cassandra.yaml", data: []byte(text), mode: 0o644}}
	for _, name := range []string{"jvm.options", "logback.xml"} {
		data, err := fs.ReadFile(conf, name)
		if err != nil {
			return nil, fmt.Errorf("read Cassandra's configuration: %w", err)
		}
		parts = append(parts, part{name: "conf/" + name, data: data, mode: 0o644})
	}
	return parts, nil
}
