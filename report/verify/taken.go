package verify

import (
	"maps"
	"regexp"
	"slices"

	"jaegerlab/lab/record"
)

// Taken are figures that stand where their run put them and nowhere else: the file vouches for them
// with its checksum, and no raw fact gives them a second time.
type Taken struct {
	File    string
	Figures []string // as the record names them; a name stands for everything below it
}

// recordFile holds what no file of a run's folder does.
const recordFile = "record.json"

// described are the parts of a run that say what it was, not what was measured.
var described = map[string]bool{
	"arm_spec": true, "round": true, "collector": true, "engine": true, "numbering": true, "load": true,
	"files": true, "resources[].asked": true, "resources[].host": true, "resources[].log": true, "resources[].name": true,
	"arm": true, "client": true, "folder": true, "profile": true, "runtime": true, "series": true, "started": true,
	"monitoring": true, "sent.retry_rule": true, "sent.pace.rate": true,
}

// taken finds the figures and words of a record that were not derived: all that no check has named. So a
// figure that is new to the record is listed until something derives it.
type taken struct {
	again map[string]bool            // derived, by path
	files map[string]string          // compared with this file of the run's folder, by path
	found map[string]map[string]bool // by file: paths
}

func newTaken() *taken {
	return &taken{again: map[string]bool{}, files: map[string]string{}, found: map[string]map[string]bool{}}
}

var entry = regexp.MustCompile(`\[[^]]*\]`)

// pathOf leaves out which entry of a list it is: all are derived alike.
func pathOf(name string) string { return entry.ReplaceAllString(name, "[]") }

func (t *taken) derived(name string)    { t.again[pathOf(name)] = true }
func (t *taken) from(name, file string) { t.files[pathOf(name)] = file }

// note adds what of this run nothing has derived, and forgets what was derived of it.
func (t *taken) note(run record.Run) {
	tree, _ := generic(run).(map[string]any)
	for key, value := range tree {
		left, _ := t.left(key, recordFile, value)
		for file, paths := range left {
			if t.found[file] == nil {
				t.found[file] = map[string]bool{}
			}
			for _, path := range paths {
				t.found[file][path] = true
			}
		}
	}
	t.again, t.files = map[string]bool{}, map[string]string{}
}

// left gives the figures at or below a path that were not derived, by the file they were taken from;
// all = none of them was, and then the path alone stands for them.
func (t *taken) left(path, file string, value any) (left map[string][]string, all bool) {
	if t.again[path] || described[path] {
		return nil, false
	}
	if from, ok := t.files[path]; ok {
		file = from
	}
	left, all = map[string][]string{}, true
	below := func(path string, value any) {
		these, whole := t.left(path, file, value)
		all = all && whole
		for file, paths := range these {
			left[file] = append(left[file], paths...)
		}
	}
	switch v := value.(type) {
	case float64, bool, string:
		left[file] = []string{path}
	case map[string]any:
		for key, value := range v {
			below(path+"."+key, value)
		}
	case []any:
		for _, value := range v {
			below(path+"[]", value)
		}
	}
	if all && len(left) == 1 {
		for file := range left {
			left[file] = []string{path}
		}
	}
	return left, all
}

// list gives them in order.
func (t *taken) list() (all []Taken) {
	for _, file := range slices.Sorted(maps.Keys(t.found)) {
		all = append(all, Taken{File: file, Figures: slices.Sorted(maps.Keys(t.found[file]))})
	}
	return all
}
