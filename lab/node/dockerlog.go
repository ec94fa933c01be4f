//go:build unix

package node

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

// follower copies a container's output into a file as it comes.
type follower struct {
	api    *client.Client
	id     string
	file   string
	cancel context.CancelFunc
	ended  chan struct{}
	once   sync.Once
}

// follow starts copying, from the container's first line.
func follow(api *client.Client, id, file string) (*follower, error) {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{api: api, id: id, file: file, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		defer out.Close()
		all := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true}
		stream, err := api.ContainerLogs(ctx, id, all)
		if err != nil {
			return // complete fetches what there is
		}
		defer stream.Close()
		_, _ = stdcopy.StdCopy(out, out, stream)
	}()
	return f, nil
}

const (
	followBound = 5 * time.Second  // from the container's end to the end of its stream
	fetchBound  = 20 * time.Second // for the whole log of a dead container
)

// complete ends the copying of a dead container and makes sure that no line is missing: daemons
// have been known to end a followed stream early, or never.
func (f *follower) complete(daemonLost bool) {
	f.once.Do(func() {
		timer := time.NewTimer(followBound)
		defer timer.Stop()
		if !daemonLost {
			select {
			case <-f.ended:
			case <-timer.C:
			}
		}
		f.cancel()
		<-f.ended
		if !daemonLost {
			_ = fetchLog(f.api, f.id, f.file) // what was followed is there already
		}
	})
}

// fetchLog replaces a log by all of a dead container's output, if that is longer.
func fetchLog(api *client.Client, id, file string) error {
	ctx, cancel := context.WithTimeout(context.Background(), fetchBound)
	defer cancel()
	stream, err := api.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return err
	}
	defer stream.Close()
	aside := file + ".all"
	out, err := os.Create(aside)
	if err != nil {
		return err
	}
	size, err := stdcopy.StdCopy(out, out, stream)
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	followed, err := os.Stat(file)
	if err == nil && followed.Size() >= size {
		return os.Remove(aside)
	}
	return os.Rename(aside, file)
}

// copyIn puts a node's files below /lab before its start, readable by any user, and makes /lab
// and /lab/tmp writable for any user: images may run as one without rights, and may be FROM
// scratch, without any folder.
func copyIn(ctx context.Context, api *client.Client, id string, files []File) error {
	archive, err := archiveOf(files)
	if err != nil {
		return fmt.Errorf("pack files: %w", err)
	}
	_, err = api.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: "/", Content: archive})
	if err != nil {
		return fmt.Errorf("copy files into the container: %w", err)
	}
	return nil
}

func archiveOf(files []File) (io.Reader, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	made := map[string]bool{}
	folder := func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o777})
	}
	root := strings.TrimPrefix(containerDir, "/")
	if err := errors.Join(folder(root), folder(root+"/tmp")); err != nil {
		return nil, err
	}
	for _, file := range files {
		name := path.Join(root, file.Name)
		var parents []string
		for parent := path.Dir(name); parent != root && parent != "."; parent = path.Dir(parent) {
			parents = append([]string{parent}, parents...)
		}
		for _, parent := range parents {
			if err := folder(parent); err != nil {
				return nil, err
			}
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(file.Data))}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(file.Data); err != nil {
			return nil, err
		}
	}
	return &buffer, archive.Close()
}
