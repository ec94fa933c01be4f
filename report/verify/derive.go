package verify

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"time"

	"jaegerlab/lab/ledger"
	"jaegerlab/lab/node"
	"jaegerlab/lab/observe"
	"jaegerlab/lab/record"
)

// derive makes the figures of one run again. Figures are named by where the record has them; those
// of a list by the name of their entry.
type derive struct {
	*verifier
	record record.Record
	run    record.Run
	dir    string
}

// listed reports whether the record has a checksum of a file of the run's folder.
func (d derive) listed(name string) bool { return d.known[d.run.Folder+"/"+name] }

// read decodes a JSON file of the run's folder; false when the run did not get that far.
func (d derive) read(name string, into any) bool {
	if !d.listed(name) {
		if d.run.Error == "" {
			d.problem("it has no %s, which every run that ended has", name)
		}
		return false
	}
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		d.problem("read %s: %v", name, err)
		return false
	}
	return true
}

// ledger judges the run again from outcomes and rows.
func (d derive) ledger() {
	if d.run.Facts == nil {
		if d.run.Error == "" {
			d.problem("its record has no facts that its ledger could be closed with")
		} else {
			d.note("the run ended before its spans were accounted for, so there is nothing to derive")
		}
		return
	}
	if d.run.Error != "" && !d.listed(record.RowsName) {
		d.note("the run ended before its rows were read back; its ledger can't be derived again")
		return
	}
	again, err := ledger.Again(d.folder, d.run)
	if err != nil {
		d.problem("%v", err)
		return
	}
	d.same("ledger", d.run.Ledger, again.Measured)
	d.same("warmup_ledger", d.run.WarmupLedger, again.Warmup)
	d.same("stored_in_window", d.run.StoredInWindow, again.StoredInWindow)
	d.same("stored_in_window_source", d.run.StoredInWindowSource, again.StoredInWindowSource)
	if d.run.StoredEachS != nil { // records of earlier labs have none, and the seal holds those that do
		d.same("stored_each_s", d.run.StoredEachS, again.StoredEachS)
	}
	d.same("stored_after_drain", d.run.StoredAfterDrain, again.StoredAfterDrain)
	d.same("latencies.send_to_store", d.run.SendToStore, again.SendToStore)
	d.same("verdict", d.run.Verdict, again.Verdict)
	d.same("reasons", d.run.Reasons, again.Reasons)
	for _, warning := range again.Warnings {
		if !slices.Contains(d.run.Warnings, warning) {
			d.problem("the warning %q is missing", warning)
		}
	}
	if d.run.Ranges != nil && d.run.Error == "" {
		d.same("ranges", *d.run.Ranges, d.run.Facts.Ranges)
	}
}

// page parses a metrics page of the run's folder; false when there is none.
func (d derive) page(name string) (observe.Snapshot, bool) {
	if !d.listed(name) {
		return observe.Snapshot{}, false
	}
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	var s observe.Snapshot
	if err == nil {
		s, err = observe.Parse(data, time.Time{})
	}
	if err != nil {
		d.problem("read %s: %v", name, err)
	}
	return s, err == nil
}

// counters reads the collector's pages again.
func (d derive) counters() {
	first, haveFirst := d.page("collector-before.prom")
	last, haveLast := d.page("collector-after.prom")
	if !haveFirst || !haveLast {
		if len(d.run.Counters) > 0 {
			d.problem("its counters come from pages that it does not have")
		}
		return
	}
	counters, warnings := observe.Between(first, last, observe.About{Arm: d.run.Spec, Services: d.run.Load.Services})
	d.same("counters", d.run.Counters, counters)
	d.same("write_statements_per_span", d.run.WriteStatementsPerSpan, observe.StatementsPerSpan(counters))
	for _, warning := range warnings {
		if !slices.Contains(d.run.Warnings, warning) {
			d.problem("the warning %q is missing", warning)
		}
	}
	start, haveStart := d.page("collector-window-start.prom")
	end, haveEnd := d.page("collector-window-end.prom")
	var saved *int64
	var source string
	if haveStart && haveEnd {
		if n, metric, ok := end.SavedSince(start); ok {
			saved, source = &n, metric
		}
	}
	var arrived *int64
	if haveStart && haveEnd {
		if n, ok := end.ArrivedSince(start); ok {
			arrived = &n
		}
	}
	d.same("arrived_in_window", d.run.ArrivedInWindow, arrived)
	d.same("saved_in_window_counter", d.run.SavedInWindowCounter, saved)
	d.same("saved_in_window_source", d.run.SavedInWindowSource, source)
}

// nodes reads the cgroups again: before the load, at the window's start where a warm-up came before it,
// at its end, after the drain.
func (d derive) nodes() {
	if len(d.run.Nodes) == 0 {
		return
	}
	var usage map[string][]node.Usage
	if !d.read("usage.json", &usage) {
		return
	}
	start := map[string]node.Usage{}
	ofWindow := d.listed("usage-window-start.json") && d.read("usage-window-start.json", &start)
	d.same("usage_of_window", d.run.UsageOfWindow, ofWindow)
	inForce := true
	for _, n := range d.run.Nodes {
		reads := usage[n.Name]
		if len(reads) == 0 {
			reads = []node.Usage{{}}
		}
		first, end, last := reads[0], reads[min(1, len(reads)-1)], reads[len(reads)-1]
		began := first
		if usage, ok := start[n.Name]; ok {
			began = usage
		}
		path := "resources[" + n.Name + "]"
		d.same(path+".cpu_s", n.CPUSeconds, less(began.CPUSeconds, end.CPUSeconds))
		d.same(path+".throttled_s", n.ThrottledS, less(began.ThrottledS, end.ThrottledS))
		d.same(path+".memory_bytes", n.MemoryBytes, end.MemoryBytes)
		d.same(path+".memory_peak_bytes", n.MemoryPeakBytes, last.MemoryPeakBytes)
		d.same(path+".oom_kills", n.OOMKills, less(first.OOMKills, last.OOMKills))
		d.same(path+".enforced", n.Enforced, observe.Unenforced(n.Asked, n.InForce) == "")
		inForce = inForce && n.Enforced
	}
	d.same("limits_in_force", d.run.LimitsInForce, inForce)
	first, _ := d.page("machine-before.prom")
	end, _ := d.page("machine-window-end.prom")
	d.same("host_load", d.run.HostLoad, observe.Others(first, end, d.run.Nodes))
	if d.run.Disk != nil { // older records have none
		d.same("busiest_disk", d.run.Disk, observe.BusiestDisk(first, end))
	}
}

func less[T int64 | float64](first, last *T) *T {
	if first == nil || last == nil || *last < *first {
		return nil
	}
	difference := *last - *first
	return &difference
}

// same compares a figure of the record with the one derived, and names where they differ.
func (d derive) same(path string, recorded, derived any) {
	if d.equal(path, recorded, derived) {
		d.result.Figures++
	}
	d.taken.derived(path)
}

// copied compares a figure of the record with the file that it was taken from.
func (d derive) copied(path, file string, recorded, written any) {
	d.equal(path, recorded, written)
	d.taken.from(path, file)
}

func (d derive) equal(path string, recorded, other any) bool {
	before := len(d.result.Problems)
	d.differ(path, generic(recorded), generic(other))
	return len(d.result.Problems) == before
}

// generic gives a value as JSON has it, so that both went the same way.
func generic(value any) (out any) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return err.Error()
	}
	return out
}

func (d derive) differ(name string, recorded, derived any) {
	switch a := recorded.(type) {
	case map[string]any:
		if b, ok := derived.(map[string]any); ok {
			for _, key := range keysOf(a, b) {
				d.differ(name+"."+key, a[key], b[key])
			}
			return
		}
	case []any:
		if b, ok := derived.([]any); ok && len(a) == len(b) {
			for i := range a {
				d.differ(name+"["+strconv.Itoa(i)+"]", a[i], b[i])
			}
			return
		}
	}
	if empty(recorded) && empty(derived) || reflect.DeepEqual(recorded, derived) {
		return
	}
	d.problem("%s is %s in the record, and its facts give %s", name, spell(recorded), spell(derived))
}

func keysOf(a, b map[string]any) (keys []string) {
	for key := range a {
		keys = append(keys, key)
	}
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// empty takes an empty list for a missing one: JSON leaves both out.
func empty(value any) bool {
	list, isList := value.([]any)
	return value == nil || isList && len(list) == 0
}

func spell(value any) string {
	text := fmt.Sprint(value)
	if value == nil {
		text = "not known"
	}
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + " ..."
	}
	return text
}
