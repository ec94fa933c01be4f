package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/moby/moby/client"

	"jaegerlab/lab/spec"
)

// lockLimit is how long one setup waits for another.
const lockLimit = time.Hour

// lock keeps two setups from building the same things at once; the second waits and says so.
func lock(ctx context.Context, say Say) (unlock func(), err error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w; LAB_CACHE names another one", err)
	}
	return lockFile(ctx, filepath.Join(cache, "setup.lock"), say)
}

func lockFile(ctx context.Context, path string, say Say) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	file := flock.New(path)
	got, err := file.TryLock()
	if err == nil && !got {
		say("wait for another setup, which holds %s", path)
		got, err = file.TryLockContext(ctx, 200*time.Millisecond)
	}
	if err != nil || !got {
		return nil, fmt.Errorf("wait for another setup, which holds %s: %w", path, err)
	}
	return func() { _ = file.Unlock() }, nil // the lock ends with the process at the latest
}

// Install makes everything that the planned arms need and that is not there yet, with progress.
// What only a backend that nobody named needs and that can't be had here is said with its remedy
// and left out; for a backend that was named it is an error.
func Install(ctx context.Context, need Need, say Say) error {
	unlock, err := lock(ctx, say)
	if err != nil {
		return err
	}
	defer unlock()
	if need.Runtime == spec.Docker {
		return installDocker(ctx, need, say)
	}
	return installProcess(ctx, need, say)
}

func installProcess(ctx context.Context, need Need, say Say) error {
	b, err := newBuilder(say)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Jars come over the network while the compiler has the CPUs.
	var fetched error
	var fetch sync.WaitGroup
	defer fetch.Wait()
	if slices.Contains(need.Programs, Cassandra) {
		java, maven, err := javaAndMaven(ctx)
		switch {
		case err == nil:
			fetch.Go(func() {
				if fetched = fetchJars(ctx, b.cache, java, maven, say); fetched != nil {
					say("%v", firstLine(fetched))
				}
			})
		case need.Named:
			return err
		default:
			say("cassandra is left out: %v", err)
			say("without Docker, Java 17 and Maven the lab runs on badger only")
		}
	}
	for _, p := range programs { // the table's order: quick builds first
		if !p.goBuilt() || p.name == ScyllaStandIn || !slices.Contains(need.Programs, p.name) {
			continue
		}
		if _, err := b.build(ctx, p, thisPlatform()); err != nil {
			return err
		}
	}
	fetch.Wait()
	return fetched
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// javaAndMaven finds what fetching and running Cassandra as a process needs; both are told at once.
func javaAndMaven(ctx context.Context) (Java, string, error) {
	java, javaErr := FindJava(ctx)
	maven, err := exec.LookPath("mvn")
	if err != nil {
		err = errors.New("find Maven, which fetches Cassandra's jars: no mvn in PATH; install Maven 3.8 or newer")
	}
	return java, maven, errors.Join(javaErr, err)
}

// installDocker pulls what is absent. Without a registry it makes the images itself where it can.
func installDocker(ctx context.Context, need Need, say Say) error {
	d, err := connect(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	catalog, err := findImages(ctx, d, need.Images)
	if err != nil {
		return err
	}
	unreachable := false
	var toMake []string
	var problems []error
	for _, name := range need.Programs {
		if name == Load && need.Images[Load] == "" {
			toMake = append(toMake, Load)
			continue
		}
		if len(catalog.Missing(name)) == 0 {
			continue
		}
		err := d.pullProgram(ctx, name, need.Images[name], unreachable, say)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errUnreachable) && canMake(name) && need.Images[name] == "":
			if !unreachable {
				say("%v", firstLine(err))
				say("make the images here instead, under the name jaegerlab/...")
			}
			unreachable = true
			toMake = append(toMake, name)
		default:
			unreachable = unreachable || errors.Is(err, errUnreachable)
			problems = append(problems, fmt.Errorf("%s: %w; an image made elsewhere comes in by docker load, "+
				"another one is named with LAB_IMAGE_...", name, err))
		}
	}
	for _, name := range toMake { // one by one: what can't be made must not keep the rest back
		if err := buildImages(ctx, say, []string{name}); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return leaveOut(need, errors.Join(problems...), say)
}

// leaveOut turns problems with a default backend's own images into remarks.
func leaveOut(need Need, err error, say Say) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var hard []error
	for _, problem := range joined.Unwrap() {
		name, _, _ := strings.Cut(problem.Error(), ":")
		if !need.Named && (name == Cassandra || name == Scylla) {
			say("left out: %v", problem)
			continue
		}
		hard = append(hard, problem)
	}
	return errors.Join(hard...)
}

func canMake(name string) bool {
	p, err := find(name)
	return err == nil && p.local != ""
}

// pullProgram pulls a program's image, unless no registry answered before.
func (d *docker) pullProgram(ctx context.Context, name, override string, unreachable bool, say Say) error {
	p, err := find(name)
	if err != nil {
		return err
	}
	ref := p.public
	if override != "" {
		ref = override
	}
	if ref == "" || unreachable { // without a public image it is made here
		return fmt.Errorf("pull %s: %w", ref, errUnreachable)
	}
	return d.pull(ctx, ref, say)
}

// removeOlder removes images of a repository other than keep that no container uses.
func (d *docker) removeOlder(ctx context.Context, repository, keep string) {
	list, err := d.api.ImageList(ctx, client.ImageListOptions{
		Filters: make(client.Filters).Add("reference", repository+":*"),
	})
	if err != nil {
		return // an old image left behind costs only space
	}
	for _, summary := range list.Items {
		for _, tag := range summary.RepoTags {
			old := time.Since(time.Unix(summary.Created, 0)) > 24*time.Hour // younger ones may be another run's plan
			if tag != keep && old && strings.HasPrefix(tag, repository+":") {
				_, _ = d.api.ImageRemove(ctx, tag, client.ImageRemoveOptions{PruneChildren: true}) // refused while in use: rightly
			}
		}
	}
}
