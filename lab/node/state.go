package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"jaegerlab/lab/spec"
)

// processID is a process for certain: a pid alone is used again after a while.
type processID struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // as the system gives it: clock ticks since boot on Linux, else a date
}

// alive reports whether exactly this process runs.
func (id processID) alive() bool {
	now, err := processStart(id.PID)
	return err == nil && now == id
}

// runOwner is the lab process that a run belongs to. It lies in the state folder before the first
// node starts, so that leftovers of a killed lab are found, and those of a live one left alone.
type runOwner struct {
	RunID   string       `json:"run"`
	Runtime spec.Runtime `json:"runtime"`
	Host    string       `json:"host"`
	Boot    string       `json:"boot"`
	Lab     processID    `json:"lab"`
	Dir     string       `json:"dir,omitempty"` // temporary folder to remove
	Kept    bool         `json:"kept"`          // the user wanted it left up
}

// thisOwner fills in the running lab process.
func thisOwner(owner runOwner) runOwner {
	owner.Host, _ = os.Hostname()
	owner.Boot = bootID()
	owner.Lab, _ = processStart(os.Getpid())
	return owner
}

// here reports whether this machine can judge the owner at all.
func (o runOwner) here() bool {
	host, _ := os.Hostname()
	return o.Host == host
}

// live reports whether the owner still runs.
func (o runOwner) live() bool { return o.Boot == bootID() && o.Lab.alive() }

// runState is a run's folder below state/ in the cache.
type runState struct {
	dir   string
	owner runOwner
}

const (
	ownerFile  = "owner.json"
	nodeSuffix = ".process"
)

// cacheDir is the lab's one folder on this machine, as package setup has it.
func cacheDir() (string, error) {
	if dir := os.Getenv("LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w (set LAB_CACHE)", err)
	}
	return filepath.Join(dir, "jaegerlab"), nil
}

func stateDir() (string, error) {
	cache, err := cacheDir()
	return filepath.Join(cache, "state"), err
}

func newRunState(owner runOwner) (*runState, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	s := &runState{dir: filepath.Join(dir, owner.RunID), owner: thisOwner(owner)}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("create state folder: %w", err)
	}
	return s, s.write()
}

func (s *runState) write() error {
	data, err := json.MarshalIndent(s.owner, "", "\t")
	if err != nil {
		return err
	}
	aside := filepath.Join(s.dir, ownerFile+".new")
	if err := os.WriteFile(aside, data, 0o644); err != nil {
		return fmt.Errorf("write run state: %w", err)
	}
	if err := os.Rename(aside, filepath.Join(s.dir, ownerFile)); err != nil {
		return fmt.Errorf("write run state: %w", err)
	}
	return nil
}

// markKept says that the run was left up on purpose.
func (s *runState) markKept() error {
	s.owner.Kept = true
	return s.write()
}

// nodeFile is where a node's first process writes its own pid and start time.
func (s *runState) nodeFile(name string) string { return filepath.Join(s.dir, name+nodeSuffix) }

func (s *runState) forget(name string) { _ = os.Remove(s.nodeFile(name)) }

func (s *runState) remove() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove run state: %w", err)
	}
	return nil
}

// stateNode is a process on record.
type stateNode struct {
	name string
	id   processID
}

func (s *runState) nodes() []stateNode {
	files, _ := filepath.Glob(filepath.Join(s.dir, "*"+nodeSuffix))
	var nodes []stateNode
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if id, err := parseStart(strings.TrimSpace(string(line))); err == nil {
			nodes = append(nodes, stateNode{name: strings.TrimSuffix(filepath.Base(file), nodeSuffix), id: id})
		}
	}
	return nodes
}

// runStates reads every run in the state folder.
func runStates() ([]*runState, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state folder: %w", err)
	}
	var states []*runState
	for _, entry := range entries {
		s := &runState{dir: filepath.Join(dir, entry.Name())}
		data, err := os.ReadFile(filepath.Join(s.dir, ownerFile))
		if err == nil {
			err = json.Unmarshal(data, &s.owner)
		}
		if err != nil || s.owner.RunID == "" {
			continue // a folder being made or removed by another lab
		}
		states = append(states, s)
	}
	return states, nil
}
