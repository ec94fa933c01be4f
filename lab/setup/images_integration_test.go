package setup

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"jaegerlab/lab/internal/need"
)

// A program built from source goes into an image FROM scratch, runs there with the context's file
// modes, is left alone while nothing changes, and is replaced when its content does.
func TestIntegrationImageFromScratch(t *testing.T) {
	need.Docker(t)
	ctx := t.Context()
	d, err := connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	b, p := fakeCheckout(t)
	p.pkg, p.local, p.recipe = ".", "jaegerlab/test-only", "node-exporter"
	source := func(word string) {
		writeAll(t, filepath.Join(b.root, p.folder), map[string]string{
			"go.mod": "module example.org/tool\n\ngo 1.26\n", "go.sum": "# " + word + "\n",
			"main.go": `package main

import "os"

func main() {
	info, err := os.Stat("/tmp")
	if err != nil {
		panic(err)
	}
	println("` + word + `", info.Mode().String(), os.Getuid())
}
`})
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		options := client.ImageRemoveOptions{Force: true, PruneChildren: true}
		if _, err := d.api.ImageRemove(ctx, p.localRef(), options); err != nil {
			t.Errorf("remove the test's image: %v", err)
		}
	})
	make := func() string {
		t.Helper()
		if err := b.programImage(ctx, d, p); err != nil {
			t.Fatal(err)
		}
		img, present, err := d.inspect(ctx, p.localRef())
		if err != nil || !present {
			t.Fatalf("the image is not there: %v", err)
		}
		return img.id
	}
	source("one")
	first := make()
	if again := make(); again != first {
		t.Errorf("an unchanged program gave another image: %s, then %s", first, again)
	}
	source("two")
	if second := make(); second == first {
		t.Error("a changed program gave the same image")
	}
	if _, present, err := d.inspect(ctx, first); err != nil || present {
		t.Errorf("the replaced image is still there (%t, %v)", present, err)
	}
	text, err := exec.CommandContext(ctx, "docker", "run", "--rm", "--network", "none", p.localRef()).CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "executable file not found") {
		t.Skip(need.Reason + "the docker command to run the image")
	}
	if want := "two dtrwxrwxrwx 65534\n"; err != nil || string(text) != want {
		t.Errorf("the image printed %q, %v; want %q", text, err, want)
	}
}

// An image that no registry has: the pull ends soon, and says that it was the registry or the name.
func TestIntegrationPullOfNothing(t *testing.T) {
	need.Docker(t)
	d, err := connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	// A registry on a loopback port where nothing listens: no traffic leaves the machine.
	err = d.pull(t.Context(), "127.0.0.1:9/jaegerlab/none:1", t.Logf)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:9/jaegerlab/none:1") {
		t.Errorf("the error is %v", err)
	}
}
