//go:build unix

package node

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"jaegerlab/lab/spec"
)

// needDocker is need.Docker, which this package can't import.
func needDocker(t *testing.T) *client.Client {
	t.Helper()
	api, err := connect(t.Context())
	if err != nil && os.Getenv("LAB_REQUIRE_DOCKER") == "1" {
		t.Fatal("LAB_REQUIRE_DOCKER=1: ", err)
	}
	if err != nil {
		t.Skip("SKIPPED, needs Docker: ", err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return api
}

var boxBinary = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "box")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "box"), "./testdata/box")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build box: %w: %s", err, output)
	}
	return os.ReadFile(filepath.Join(dir, "box"))
})

// boxImage makes an image FROM scratch: no shell, one static program, and an exposed port that
// nobody asked for.
func boxImage(t *testing.T, api *client.Client, withCat bool) string {
	t.Helper()
	binary, err := boxBinary()
	if err != nil {
		t.Fatal(err)
	}
	var layers bytes.Buffer
	archive := tar.NewWriter(&layers)
	names := []string{"box"}
	if withCat {
		names = append(names, "bin/cat")
	}
	for _, name := range names {
		header := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(binary))}
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(binary); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	image := fmt.Sprintf("jaegerlab-test/box:%d-%v", os.Getpid(), withCat)
	result, err := api.ImageImport(t.Context(), client.ImageImportSource{Source: &layers, SourceName: "-"}, image,
		client.ImageImportOptions{Changes: []string{`ENTRYPOINT ["/box"]`, "EXPOSE 7777", "USER 4711"}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, result)
	_ = result.Close()
	t.Cleanup(func() {
		_, _ = api.ImageRemove(context.Background(), image, client.ImageRemoveOptions{Force: true})
	})
	return image
}

func newContainers(t *testing.T, withCat bool) (*containers, Binary) {
	t.Helper()
	api := needDocker(t)
	t.Setenv("LAB_CACHE", t.TempDir())
	image := boxImage(t, api, withCat)
	r, err := NewDocker(t.Context(), DockerOptions{
		RunID: fmt.Sprintf("t%d-%d", os.Getpid(), time.Now().UnixNano()%1e9), LogDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		found, err := labelled(context.Background(), api, runLabel+"="+r.(*containers).options.RunID)
		if err != nil || len(found) > 0 {
			t.Errorf("left after close: %v, %v", found, err)
		}
	})
	return r.(*containers), Binary{Image: image}
}

// Case 35 in Docker: every line of a container that dies at once is saved, and nothing hangs.
func TestIntegrationEveryLineOfAContainerThatExitsAtOnce(t *testing.T) {
	r, box := newContainers(t, false)
	for i := range 3 {
		n := start(t, r, Program{Name: "lines", Binary: box, Args: []string{"lines", "10000", "3"}})
		awaitDone(t, n)
		log, err := os.ReadFile(n.LogFile())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(log), "\n"), "\n")
		if len(lines) != 10000 || lines[0] != "line 0" || lines[9999] != "line 9999" {
			t.Errorf("round %d: %d lines, last %q", i, len(lines), lines[len(lines)-1])
		}
		if n.Exit() != "exit status 3" {
			t.Errorf("exit %q", n.Exit())
		}
	}
}

// Case 38 in Docker: limits as in force are read from the host's cgroup and from within.
func TestIntegrationContainerLimitsAreReadBack(t *testing.T) {
	r, box := newContainers(t, true)
	asked := spec.Limits{CPUSet: []int{0}, CPUShares: 512, CPUs: 0.5, MemoryBytes: 256 << 20}
	n := start(t, r, Program{
		Name: "limited", Binary: box, Args: []string{"stubborn"}, Limits: asked, Grace: time.Millisecond,
	})
	await(t, n, "ready")
	got, err := n.LimitsInForce(t.Context())
	if err != nil || got == nil {
		t.Fatalf("read back %v, %v", got, err)
	}
	if differences := notInForce(asked, got); len(differences) > 0 {
		t.Errorf("from the host: %q", differences)
	}
	inside := n.(*containerNode)
	blind := &containerNode{
		runtime: r, program: inside.program, name: inside.name, id: inside.id, done: make(chan struct{}),
	}
	got, err = blind.LimitsInForce(t.Context())
	if err != nil || got == nil || len(notInForce(asked, got)) > 0 {
		t.Errorf("from within: %+v, %v", got, err)
	}
	usage, err := blind.Read(t.Context())
	if err != nil || usage.CPUSeconds == nil || usage.MemoryBytes == nil || *usage.MemoryBytes <= 0 {
		t.Errorf("usage from the daemon: %+v, %v", usage, err)
	}
	usage, err = n.Read(t.Context())
	if err != nil || usage.CPUSeconds == nil || usage.ThrottledS == nil || usage.MemoryBytes == nil {
		t.Errorf("usage from the host: %+v, %v", usage, err)
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if usage, err := n.Read(t.Context()); err != nil || usage.CPUSeconds == nil {
		t.Errorf("last usage %+v, %v", usage, err)
	}
	if got, err := n.LimitsInForce(t.Context()); err != nil || got == nil {
		t.Errorf("limits after its end: %v, %v", got, err)
	}
}

// Cases 12 and 24 in Docker.
func TestIntegrationContainerOOMNamesTheLimit(t *testing.T) {
	r, box := newContainers(t, false)
	n := start(t, r, Program{
		Name: "eater", Binary: box, Args: []string{"eat"}, Limits: spec.Limits{MemoryBytes: 48 << 20},
	})
	awaitDone(t, n)
	if n.Exit() != "killed: out of memory at its limit of 48 MiB" {
		t.Errorf("exit %q", n.Exit())
	}
	if usage, err := n.Read(t.Context()); err != nil || usage.OOMKills == nil || *usage.OOMKills == 0 {
		t.Errorf("usage %+v, %v", usage, err)
	}
}

// Names resolve in the run's network, ports are on 127.0.0.1 only (case 31), and files are
// readable by the image's unprivileged user (case 42).
func TestIntegrationContainersReachEachOtherByName(t *testing.T) {
	r, box := newContainers(t, false)
	server := start(t, r, Program{
		Name: "server", Binary: box, Ports: []Port{{Name: "http", Number: 8080}},
		Args:  []string{"serve", "${ip}:${port.http}", "${dir}/conf/greeting.txt"},
		Files: []File{{Name: "conf/greeting.txt", Data: []byte("hello from ${host}\n")}},
	})
	await(t, server, "serving 18 <nil>")
	if host, _, _ := net.SplitHostPort(server.Addr("http")); host != "127.0.0.1" {
		t.Errorf("address %q", server.Addr("http"))
	}
	conn, err := net.Dial("tcp4", server.Addr("http"))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(conn)
	conn.Close()
	if string(text) != "hello from server\n" {
		t.Errorf("from outside: %q", text)
	}
	peer := start(t, r, Program{Name: "peer", Binary: box, Args: []string{"ask", server.PeerAddr("http")}})
	awaitDone(t, peer)
	if !strings.Contains(peer.Tail(5), "answer hello from server") || peer.Exit() != "exit status 0" {
		t.Errorf("from a peer: %q, %s", peer.Tail(5), peer.Exit())
	}
	list, err := r.client.ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", runLabel+"="+r.options.RunID),
	})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d containers, %v", len(list.Items), err)
	}
	for _, c := range list.Items {
		for _, port := range c.Ports {
			if port.PublicPort != 0 && port.IP.String() != "127.0.0.1" {
				t.Errorf("%v published on %s", c.Names, port.IP)
			}
		}
	}
}

// Case 30: a stubborn container is killed after its grace; one that can't start is removed.
// Case 36: a missing image is named, and not pulled.
func TestIntegrationContainersThatWontStopOrStart(t *testing.T) {
	r, box := newContainers(t, false)
	n := start(t, r, Program{Name: "stubborn", Binary: box, Args: []string{"stubborn"}, Grace: 300 * time.Millisecond})
	await(t, n, "ready")
	if err := n.Pause(t.Context()); err != nil {
		t.Error(err)
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(n.Exit(), "SIGKILL") || !strings.Contains(n.Exit(), "as the lab asked") {
		t.Errorf("exit %q", n.Exit())
	}
	broken := box
	broken.Entrypoint = []string{"/not-there"}
	_, err := r.Start(t.Context(), Program{Name: "broken", Binary: broken})
	if err == nil || !strings.Contains(err.Error(), "start broken") {
		t.Errorf("broken image: %v", err)
	}
	found, err := labelled(t.Context(), r.client, nodeLabel+"=broken")
	if err != nil || len(found) > 0 {
		t.Errorf("left of a failed start: %v, %v", found, err)
	}
	before := time.Now()
	_, err = r.Start(t.Context(), Program{Name: "none", Binary: Binary{Image: "jaegerlab-test/not-there:1"}})
	took := time.Since(before)
	if err == nil || !strings.Contains(err.Error(), "docker pull jaegerlab-test/not-there:1") || took > 5*time.Second {
		t.Errorf("missing image after %s: %v", took, err)
	}
	if _, present, err := ImagePresent(t.Context(), box.Image); err != nil || !present {
		t.Errorf("image %s: %v, %v", box.Image, present, err)
	}
	if _, present, err := ImagePresent(t.Context(), "jaegerlab-test/not-there:1"); err != nil || present {
		t.Errorf("image not-there: %v, %v", present, err)
	}
}

// A daemon that stops answering in mid-run: nothing hangs, what it holds is named, and the next
// start removes it. The daemon's death is played by a proxy before its socket.
func TestIntegrationDaemonThatStopsAnswering(t *testing.T) {
	api := needDocker(t)
	t.Setenv("LAB_CACHE", t.TempDir())
	image := boxImage(t, api, false)
	socket := filepath.Join(t.TempDir(), "d.sock")
	cut := proxySocket(t, socket, strings.TrimPrefix(api.DaemonHost(), "unix://"))
	runID := fmt.Sprintf("lost%d", os.Getpid())
	cmd := exec.Command(os.Args[0], "as", "dockerlab", runID, image, t.TempDir())
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+socket)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(said.String(), "up") {
		n, err := output.Read(buffer)
		said.Write(buffer[:n])
		if err != nil {
			t.Fatalf("lab said %q: %v", said.String(), err)
		}
	}
	cut()
	rest, _ := io.ReadAll(output)
	_ = cmd.Wait()
	for _, want := range []string{
		"exit unknown: the Docker daemon stopped answering",
		"the Docker daemon does not answer; it still holds container jaegerlab-" + runID + "-stubborn, " +
			"network jaegerlab-" + runID,
	} {
		if !strings.Contains(string(rest), want) {
			t.Errorf("no %q in %s", want, rest)
		}
	}
	told, err := Sweep(t.Context(), Dead)
	if err != nil || !slices.Contains(told, "container jaegerlab-"+runID+"-stubborn of run "+runID) {
		t.Errorf("the next start told %q, %v", told, err)
	}
	if found, err := labelled(t.Context(), api, runLabel+"="+runID); err != nil || len(found) > 0 {
		t.Errorf("left: %v, %v", found, err)
	}
}

// LAB_KEEP in Docker: containers and network stay up after Close, and the next start leaves them.
// Clean is not run here: it would end a stack that the user has kept.
func TestIntegrationKeptContainersStayUp(t *testing.T) {
	api := needDocker(t)
	t.Setenv("LAB_CACHE", t.TempDir())
	image := boxImage(t, api, false)
	runID := fmt.Sprintf("kept%d", os.Getpid())
	r, err := NewDocker(t.Context(), DockerOptions{RunID: runID, LogDir: t.TempDir(), Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left := containers{client: api, options: DockerOptions{RunID: runID}, network: "jaegerlab-" + runID}
		if err := left.removeAll(context.Background()); err != nil {
			t.Error(err)
		}
	})
	n := start(t, r, Program{Name: "kept", Binary: Binary{Image: image}, Args: []string{"stubborn"}})
	await(t, n, "ready")
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told, err := Sweep(t.Context(), Dead); err != nil || strings.Contains(strings.Join(told, "\n"), runID) {
		t.Errorf("the next start told %q, %v", told, err)
	}
	found, err := labelled(t.Context(), api, runLabel+"="+runID)
	if err != nil || len(found) != 2 {
		t.Fatalf("after close: %v, %v", found, err)
	}
	for _, one := range found {
		if remove, _ := one.judge(All, keptRuns()); !remove {
			t.Errorf("clean would leave %s %s", one.kind, one.name)
		}
	}
}

// Case 30 (a): two packages have containers at the same time; the end of one, and the sweep of a
// third that starts, leave those of the slower one alone.
func TestIntegrationASlowerPackageKeepsItsContainers(t *testing.T) {
	api := needDocker(t)
	t.Setenv("LAB_CACHE", t.TempDir())
	image := boxImage(t, api, false)
	up := func(name string) (Runtime, Node) {
		r, err := NewDocker(t.Context(), DockerOptions{RunID: fmt.Sprint(name, os.Getpid()), LogDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close(context.WithoutCancel(t.Context())) })
		n := start(t, r, Program{Name: name, Binary: Binary{Image: image}, Args: []string{"stubborn"}})
		await(t, n, "ready")
		return r, n
	}
	_, slow := up("slow")
	fast, _ := up("fast")
	if err := fast.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told, err := Sweep(t.Context(), Dead); err != nil || len(told) > 0 {
		t.Errorf("a sweep beside a live run told %q, %v", told, err)
	}
	if slow.Exit() != "" {
		t.Errorf("the slower run's container ended: %s", slow.Exit())
	}
	if _, err := slow.Read(t.Context()); err != nil {
		t.Errorf("the slower run's container can't be read: %v", err)
	}
}

// dockerLab is a lab process with one container up, until its daemon is lost.
func dockerLab(runID, image, logs string) int {
	ctx := context.Background()
	r, err := NewDocker(ctx, DockerOptions{RunID: runID, LogDir: logs})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	n, err := r.Start(ctx, Program{Name: "stubborn", Binary: Binary{Image: image}, Args: []string{"stubborn"}})
	if err != nil {
		fmt.Println(err, r.Close(ctx))
		return 1
	}
	fmt.Println("up")
	<-n.Done()
	fmt.Println("exit", n.Exit())
	fmt.Println(r.Close(ctx))
	return 0
}

// proxySocket serves a socket that forwards to another one until it is cut.
func proxySocket(t *testing.T, socket, to string) (cut func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.(*net.UnixConn).CloseWrite() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	cut = func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			_ = conn.Close()
		}
	}
	t.Cleanup(cut)
	return cut
}
