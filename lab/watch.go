package lab

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"regexp"
	"time"

	"jaegerlab/lab/node"
	"jaegerlab/lab/observe"
)

// fullBelow is what a database can't go on with: its commit log takes segments of 32 MiB.
const fullBelow = 64 << 20

// watch ends the load as soon as a node of the measured path dies.
func (r *round) watch(ctx context.Context) {
	dead := make(chan node.Node, 1)
	for _, n := range r.nodes() {
		go func() {
			select {
			case <-n.Done():
				select {
				case dead <- n:
				default:
				}
			case <-ctx.Done():
			}
		}()
	}
	select {
	case <-ctx.Done():
	case n := <-dead:
		r.died = fmt.Errorf("%s died in mid-run: %s; its log ends:\n%s", n.Name(), n.Exit(), n.Tail(12))
		r.Console.Say("%s died: %s; ending the load", n.Name(), n.Exit())
		_ = r.remote.Stop(ctx, stopGrace) // a load node that died itself can't answer; Wait notices
	}
}

// newPulse watches the nodes of a store that has some.
func (r *round) newPulse() *observe.Pulse {
	cluster, ok := r.Cluster.(interface {
		Answers(ctx context.Context) []error
	})
	if !ok {
		return nil
	}
	pulse := &observe.Pulse{Answers: cluster.Answers}
	for _, n := range r.Cluster.Nodes() {
		pulse.Nodes = append(pulse.Nodes, n.Name())
	}
	return pulse
}

// judgePulse says which nodes were away for a while, and whether the driver came back to them.
func (r *round) judgePulse() {
	if r.pulse == nil {
		return
	}
	r.run.Warnings = append(r.run.Warnings, r.pulse.Warnings(time.Unix(0, r.run.Window.Start))...)
	r.run.Unfit = r.pulse.NotRecovered(time.Unix(0, r.run.Window.End))
}

// largeData is how Cassandra (4 and 5) and ScyllaDB log a partition, row or cell above their threshold.
var largeData = regexp.MustCompile(`(?i)writing large (partition|row|cell|collection)|guardrail partition_\w+ violated`)

// noteLargeData counts what database nodes logged about large partitions: one tag value that all
// spans share gathers them in one partition of the index, and that is a property of the load.
func (r *round) noteLargeData() {
	if r.Cluster == nil {
		return
	}
	for _, n := range r.Cluster.Nodes() {
		lines, first := 0, ""
		err := eachLine(n.LogFile(), func(line string) {
			if largeData.MatchString(line) {
				if lines++; lines == 1 {
					first = line
				}
			}
		})
		if err == nil && lines > 0 {
			r.run.Warnings = append(r.run.Warnings,
				fmt.Sprintf("%s warned of large partitions, rows or cells %d times; first: %s", n.Name(), lines, first))
		}
	}
}

// eachLine hands on every line of a log, which may be large; a line beyond a mebibyte ends it.
func eachLine(path string, see func(line string)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		see(lines.Text())
	}
	return lines.Err()
}

// noteFullDisks names a disk that has run full under the load: what a database then does (stop,
// refuse, abort) is told by its log at best. In Docker data is on the daemon's disk, which is not
// asked; results are on this machine's.
func (r *round) noteFullDisks() {
	for _, dir := range []string{os.TempDir(), r.folder.Dir} {
		free := diskFree(dir)
		if free < 0 || free >= fullBelow {
			continue
		}
		r.run.Warnings = append(r.run.Warnings, fmt.Sprintf("disk full: %.0f MiB are free at %s (TMPDIR holds the data of "+
			"plain processes, LAB_RESULTS the results)", float64(free)/(1<<20), dir))
	}
}
