package setup

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"
)

// imageLimit bounds making one image from files that are already here.
const imageLimit = 10 * time.Minute

// part is one entry of a build context: text, or a file or folder on disk.
type part struct {
	name string // in the context; folders end with "/"
	data []byte
	from string // file on disk instead of data
	mode int64
}

// writeContext writes a build context. Times are zero, so that the same parts make the same layers.
func writeContext(w io.Writer, parts []part) error {
	out := tar.NewWriter(w)
	for _, p := range parts {
		if err := writePart(out, p); err != nil {
			return fmt.Errorf("put %s into the build context: %w", p.name, err)
		}
	}
	return out.Close()
}

func writePart(out *tar.Writer, p part) error {
	header := &tar.Header{Name: p.name, Mode: p.mode, Size: int64(len(p.data)), Typeflag: tar.TypeReg}
	if strings.HasSuffix(p.name, "/") {
		header.Typeflag = tar.TypeDir
		return out.WriteHeader(header)
	}
	var data io.Reader = strings.NewReader(string(p.data))
	if p.from != "" {
		file, err := os.Open(p.from)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		header.Size, data = info.Size(), file
	}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(out, data)
	return err
}

// folderParts are the files of a flat folder, below prefix in the context.
func folderParts(prefix, folder string) ([]part, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, entry := range entries {
		parts = append(parts, part{name: prefix + entry.Name(), from: filepath.Join(folder, entry.Name()), mode: 0o644})
	}
	return parts, nil
}

// skeleton is what a program FROM scratch expects of a root file system: a folder for temporary
// files, and names for the users of the recipes.
func skeleton() []part {
	passwd := "root:x:0:0:root:/:/sbin/nologin\n" +
		"jaeger:x:10001:10001::/:/sbin/nologin\nnobody:x:65534:65534::/:/sbin/nologin\n"
	group := "root:x:0:\njaeger:x:10001:\nnobody:x:65534:\n"
	return []part{
		{name: "root/", mode: 0o755}, {name: "root/tmp/", mode: 0o1777}, {name: "root/etc/", mode: 0o755},
		{name: "root/etc/passwd", data: []byte(passwd), mode: 0o644},
		{name: "root/etc/group", data: []byte(group), mode: 0o644},
		{name: "empty/", mode: 0o755},
	}
}

// buildImage makes an image from a context that is streamed, not held in memory.
func (d *docker) buildImage(ctx context.Context, ref string, labels, args map[string]string, parts []part) error {
	ctx, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(writeContext(writer, parts)) }() // the reader gets the error
	defer reader.Close()

	buildArgs := map[string]*string{}
	for name, value := range args {
		buildArgs[name] = &value
	}
	result, err := d.api.ImageBuild(ctx, reader, client.ImageBuildOptions{
		Tags: []string{ref}, Labels: labels, BuildArgs: buildArgs, Version: build.BuilderV1,
		Remove: true, ForceRemove: true, NetworkMode: "none",
	})
	if err != nil {
		return fmt.Errorf("build image %s: %w", ref, err)
	}
	defer result.Body.Close()
	if err := drain(result.Body); err != nil {
		return fmt.Errorf("build image %s: %w", ref, err)
	}
	return nil
}

// importImage makes an image from the tar of a root file system.
func (d *docker) importImage(ctx context.Context, ref string, labels map[string]string, rootfs io.Reader) error {
	var changes []string
	for name, value := range labels {
		changes = append(changes, fmt.Sprintf("LABEL %s=%q", name, value))
	}
	result, err := d.api.ImageImport(ctx, client.ImageImportSource{Source: rootfs, SourceName: "-"}, ref,
		client.ImageImportOptions{Changes: changes})
	if err != nil {
		return fmt.Errorf("import image %s: %w", ref, err)
	}
	defer result.Close()
	if err := drain(result); err != nil {
		return fmt.Errorf("import image %s: %w", ref, err)
	}
	return nil
}

// drain reads the daemon's messages to their end and returns the error among them, with the last
// lines before it.
func drain(messages io.Reader) error {
	decoder := json.NewDecoder(bufio.NewReader(messages))
	var last []string
	for {
		var message jsonstream.Message
		err := decoder.Decode(&message)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the daemon's answer: %w", err)
		}
		if message.Error != nil {
			return fmt.Errorf("%w; last steps: %s", message.Error, strings.Join(last, " | "))
		}
		if text := strings.TrimSpace(message.Stream); text != "" {
			last = append(last, text)
			last = last[max(0, len(last)-5):]
		}
	}
}
