package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"jaegerlab/lab/backend"
	"jaegerlab/lab/ledger"
	"jaegerlab/lab/load"
	"jaegerlab/lab/node"
	"jaegerlab/lab/observe"
	"jaegerlab/lab/record"
	"jaegerlab/lab/spec"
	"jaegerlab/lab/trace"
)

const (
	progressEvery = 100 * time.Millisecond // also how late the read at the window's end may be
	stopGrace     = 2 * time.Second        // for requests in flight when a load is ended early
	salvageWithin = 5 * time.Second        // for what an interrupted load already knows
)

// window holds what is read around the load.
type window struct {
	atFirst, atStart, atEnd, atLast observe.Snapshot        // the collector's metrics
	machineFirst, machineEnd        observe.Snapshot        // the machine's CPUs, at the window's start and end
	usage                           map[string][]node.Usage // by node: before the load, at the window's end, after the drain
	usageStart                      map[string]node.Usage   // by node: at the window's start; nil without a warm-up, or before its end
	inForce                         map[string]*spec.Limits // by node: at the window's end
	result                          load.Result
	sampler                         *observe.Sampler
	pulse                           *observe.Pulse // nil: a store without nodes
	died                            error
	drained                         *observe.Drained // nil: nobody waited
}

// load drives the window and opens the account of what was sent. A node that dies ends the load
// early; what was measured until then is still drained and read back.
func (r *round) load(ctx context.Context) error {
	if err := r.readBefore(ctx); err != nil {
		return err
	}
	job := load.Job{
		Numbering: r.Numbering, Load: r.spec.Load, Seed: r.spec.Seed, Client: r.arm.Client,
		Target: r.Collector.IngestAddr(true),
	}
	if r.Hooks.Path != nil {
		job.Target = r.Hooks.Path(job.Target)
	}
	r.run.StartToLoadS = time.Since(r.started).Seconds()
	r.Console.Say("%s: up after %.0f s; load for %d s", r.arm.Name(), r.run.StartToLoadS, r.spec.Load.WarmupS+r.spec.Load.DurationS)
	if err := r.remote.Start(ctx, job); err != nil {
		return err
	}
	loadCtx, loaded := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { r.watch(loadCtx) })
	if r.Hooks.AtLoad != nil {
		beside.Go(func() { r.Hooks.AtLoad(loadCtx, r.Stack) })
	}
	state := load.Idle
	_, err := r.remote.Wait(ctx, progressEvery, func(p load.Progress) { state = r.follow(ctx, p, state) })
	loaded()
	beside.Wait()
	r.noteFullDisks()
	if err != nil {
		return err
	}
	return r.collectOutcomes(ctx)
}

func (r *round) readBefore(ctx context.Context) error {
	first, err := observe.Scrape(ctx, r.Collector.MetricsAddr)
	if err != nil {
		return err
	}
	r.window = window{atFirst: first, atStart: first, usage: map[string][]node.Usage{}}
	r.readUsage(ctx)
	r.machineFirst = r.readMachine(ctx)
	r.pulse = r.newPulse()
	r.sampler, err = observe.StartSampler(context.WithoutCancel(ctx), observe.SamplerAsk{
		Nodes: r.nodes(), Dir: r.folder.Dir, Progress: r.progressPoints, Pulse: r.pulse, Push: r.pusher(),
		Counters: r.pulse.Counters(r.Collector.Node.Name(), r.Collector.MetricsAddr, r.arm.Client),
	})
	return err
}

func (r *round) progressPoints(ctx context.Context) ([]observe.Point, error) {
	p, err := r.remote.Progress(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var points []observe.Point
	for _, one := range []struct {
		metric string
		value  int64
	}{{"generated", p.Generated}, {"acked", p.Acked}, {"refused", p.Refused}, {"unanswered", p.Unanswered}} {
		points = append(points, observe.Point{At: now, Node: r.Load.Name(), Metric: one.metric, Unit: "spans", Value: float64(one.value)})
	}
	return points, nil
}

// readUsage reads every node's cgroup once more. What can't be read is empty, which the record
// shows as null.
func (r *round) readUsage(ctx context.Context) {
	for name, usage := range r.usageNow(ctx) {
		r.usage[name] = append(r.usage[name], usage)
	}
}

func (r *round) usageNow(ctx context.Context) map[string]node.Usage {
	now := map[string]node.Usage{}
	for _, n := range r.nodes() {
		now[n.Name()], _ = n.Read(ctx)
	}
	return now
}

// readLimits reads back what holds while the load still does: later, what was measured may be under
// other limits, or gone.
func (r *round) readLimits(ctx context.Context) {
	r.inForce = map[string]*spec.Limits{}
	for _, n := range r.nodes() {
		if limits, err := n.LimitsInForce(ctx); err == nil {
			r.inForce[n.Name()] = limits
		}
	}
}

// readMachine reads how busy the whole machine is; empty when no node-exporter answers.
func (r *round) readMachine(ctx context.Context) observe.Snapshot {
	if r.Monitor == nil {
		return observe.Snapshot{}
	}
	page, err := observe.Scrape(ctx, r.Monitor.Exporter.Addr("http"))
	if err != nil {
		return observe.Snapshot{}
	}
	machine, _ := observe.Machine(page)
	return machine
}

// follow shows progress, and reads collector, nodes and machine when the window begins (after a
// warm-up) and ends: a rate is only true over the window it was read over.
func (r *round) follow(ctx context.Context, p load.Progress, before string) string {
	if p.State == load.InWindow && before == load.WarmingUp {
		r.atStart, _ = observe.Scrape(ctx, r.Collector.MetricsAddr) // empty: not known, and never the warm-up's start
		r.usageStart = r.usageNow(ctx)
		r.machineFirst = r.readMachine(ctx)
	}
	if p.State != load.InWindow && p.State != load.WarmingUp && (before == load.InWindow || before == load.Idle) {
		if s, err := observe.Scrape(ctx, r.Collector.MetricsAddr); err == nil {
			r.atEnd = s
		}
		r.readUsage(ctx)
		r.readLimits(ctx)
		r.machineEnd = r.readMachine(ctx)
	}
	r.Console.Live("%s", r.line(p))
	return p.State
}

// collectOutcomes takes over what became of every request, and saves it before anything else.
func (r *round) collectOutcomes(ctx context.Context) error {
	result, err := r.remote.Result(ctx)
	if err != nil {
		return err
	}
	r.result = result
	r.run.Window, r.run.Sent, r.run.Request = result.Window, result.Sent, result.Request
	r.run.WindowS = float64(result.Window.End-result.Window.Start) / 1e9
	if !result.Complete && r.died == nil {
		r.run.Warnings = append(r.run.Warnings, "the load ended before its window did")
	}
	if err := r.saveJSON("load.json", result); err != nil {
		return err
	}
	file, err := r.folder.WriteOutcomes(result.Outcomes)
	if err != nil {
		return err
	}
	r.run.Files = append(r.run.Files, file)
	r.book, err = ledger.New(r.Numbering, result.Generated, result.Outcomes)
	return err
}

// drain waits until nothing moves any more, and reads everything a last time.
func (r *round) drain(ctx context.Context) error {
	drained, err := observe.Drain(ctx, observe.DrainAsk{
		WindowEnd: time.Unix(0, r.run.Window.End), Bound: time.Duration(r.spec.Load.DrainS) * time.Second,
		Collector: r.Collector.Node, Rows: r.Store.Rows, Say: r.Console.Live, Quiet: r.quiet(),
		Counters: observe.CollectorCounters(r.Collector.MetricsAddr, r.arm.Client),
	})
	if err != nil {
		return err
	}
	r.drained = &drained
	r.run.DrainS = drained.DrainS
	r.run.Warnings = append(r.run.Warnings, drained.Warnings...)
	r.readUsage(ctx)
	if cluster, ok := r.Cluster.(interface {
		Compactions(context.Context) *float64
	}); ok {
		r.run.Backlog = cluster.Compactions(ctx)
	}
	r.readCounters(ctx)
	if r.Monitor != nil {
		if err := r.Monitor.LastScrape(ctx, time.Now()); err != nil {
			r.run.Warnings = append(r.run.Warnings, fmt.Sprintf("Prometheus misses the run's end: %v", err))
		}
	}
	return r.closeSeries()
}

// quiet is how long nothing must move after the load; 0 leaves it to package observe. A black hole
// has neither queue nor writes: only packets may still be on their way.
func (r *round) quiet() time.Duration {
	if r.arm.Backend.Engine == spec.Null {
		return time.Second
	}
	return 0
}

func (r *round) readCounters(ctx context.Context) {
	last, err := observe.Scrape(ctx, r.Collector.MetricsAddr)
	if err != nil {
		r.run.Warnings = append(r.run.Warnings, fmt.Sprintf("the collector's counters after the drain are not known: %v", err))
		return
	}
	r.atLast = last
	counters, warnings := observe.Between(r.atFirst, r.atLast, observe.About{Arm: r.arm, Services: r.spec.Load.Services})
	r.run.Counters = counters
	r.run.Warnings = append(r.run.Warnings, warnings...)
	r.run.WriteStatementsPerSpan = observe.StatementsPerSpan(counters)
	r.savedInWindow()
}

// savedInWindow takes what the collector's counters gained between the window's two ends.
func (r *round) savedInWindow() {
	if r.atStart.Raw == nil || r.atEnd.Raw == nil {
		r.run.Warnings = append(r.run.Warnings, "the collector could not be read at the window's start or end: saved in window is not known")
		return
	}
	if saved, metric, ok := r.atEnd.SavedSince(r.atStart); ok {
		r.run.SavedInWindowCounter, r.run.SavedInWindowSource = &saved, metric
	}
	if arrived, ok := r.atEnd.ArrivedSince(r.atStart); ok {
		r.run.ArrivedInWindow = &arrived
	}
}

func (r *round) closeSeries() error {
	if r.sampler == nil {
		return nil
	}
	sampler := r.sampler
	r.sampler = nil
	r.judgePulse()
	name, warnings, err := sampler.Close(time.Unix(0, r.run.Window.Start))
	r.run.Warnings = append(r.run.Warnings, warnings...)
	if err != nil {
		return err
	}
	r.run.Series = filepath.ToSlash(filepath.Join(r.folder.Name, name))
	return r.sum(name)
}

// readBack reads every stored row and closes the ledger.
func (r *round) readBack(ctx context.Context) error {
	if r.Hooks.BeforeReadBack != nil {
		if err := r.Hooks.BeforeReadBack(ctx, r.Stack); err != nil {
			return fmt.Errorf("hook before the read-back: %w", err)
		}
	}
	rows, err := r.folder.Rows()
	if err != nil {
		return err
	}
	began, n := time.Now(), 0
	read, err := r.Store.Read(ctx, backend.Ask{
		QueryAddr: r.Collector.QueryAddr, Numbering: r.Numbering, Traces: r.traces,
	}, func(row record.Row) error {
		r.book.Add(row)
		if n++; n%10_000 == 0 {
			r.Console.Live("%s: reading back: %d rows", r.arm.Name(), n)
		}
		return rows.Write(row)
	})
	seconds := time.Since(began).Seconds()
	file, closed := rows.Close()
	if closed != nil {
		return errors.Join(err, closed)
	}
	r.run.Files = append(r.run.Files, file)
	r.run.ReadBackS, r.run.Ranges = &seconds, &read.Ranges
	for _, text := range read.Failed {
		r.run.Warnings = append(r.run.Warnings, "read-back: "+text)
	}
	if err != nil {
		// The rows of the ranges that were read stand; the ledger says that they are not all.
		r.run.Warnings = append(r.run.Warnings, err.Error())
		read.Ranges.Asked = max(read.Ranges.Asked, read.Ranges.Read+1)
	}
	r.judge(read)
	r.recordNodes(ctx)
	return r.saveRaw()
}

// traces yields the ids of every trace that was generated, in the order of the numbering.
func (r *round) traces(yield func(high, low uint64) bool) {
	for _, phase := range []trace.Phase{trace.Measured, trace.Warmup} {
		for worker, spans := range r.result.Generated[phase] {
			width := uint64(r.Numbering.Width)
			for seq := range (spans + width - 1) / width {
				if !yield(r.Numbering.TraceID(phase, uint32(worker), seq)) {
					return
				}
			}
		}
	}
}

// judge closes the ledger and takes its figures into the run.
func (r *round) judge(read backend.ReadResult) {
	facts := ledger.Facts{
		Window: r.run.Window, HasForeign: read.HasForeign, HasDuplicates: read.HasDuplicates,
		HasWriteTime: read.HasWriteTime, Ranges: read.Ranges, AbsentUnknown: read.AbsentUnknown, NoStore: read.NoStore,
		ClockOffset: r.clockOffset(),
	}
	if d := r.drained; d != nil {
		facts.StillMoving = !d.Settled
		if d.Settled && !d.Last.At.IsZero() {
			facts.DrainEndUS = d.Last.At.UnixMicro()
		}
	}
	result := r.book.Close(facts)
	r.run.Generated, r.run.Facts = r.result.Generated, &facts
	r.run.Ledger, r.run.WarmupLedger = result.Measured, result.Warmup
	r.run.StoredInWindow, r.run.StoredInWindowSource = result.StoredInWindow, result.StoredInWindowSource
	r.run.StoredEachS = result.StoredEachS
	r.run.StoredAfterDrain, r.run.SendToStore = result.StoredAfterDrain, result.SendToStore
	r.run.Verdict, r.run.Reasons = result.Verdict, result.Reasons
	r.run.Warnings = append(r.run.Warnings, result.Warnings...)
	if result.StoredInWindow != nil && r.run.WindowS > 0 {
		rate := float64(*result.StoredInWindow) / r.run.WindowS
		r.run.StoredPerS = &rate
	}
	if read.NoStore {
		r.Console.Say("%s: measured; nothing is stored", r.arm.Name())
		return
	}
	r.Console.Say("%s: %s", r.arm.Name(), r.run.Verdict)
}

// recordNodes says for each node what was asked, what was in force and what it used. CPU is of the
// window, memory of its end; peaks, kills and exits are of the whole run.
func (r *round) recordNodes(ctx context.Context) {
	r.run.Nodes, r.run.LimitsInForce = nil, true
	r.run.UsageOfWindow = r.usageStart != nil
	if r.inForce == nil { // a run that was broken before its window's end
		r.readLimits(ctx)
	}
	for _, n := range r.nodes() {
		reads := r.usage[n.Name()]
		for len(reads) < 2 {
			reads = append(reads, node.Usage{}) // an empty read: its figures are not known
		}
		first := reads[0]
		if start, ok := r.usageStart[n.Name()]; ok {
			first = start
		}
		one := observe.Usage(n, first, reads[1], r.inForce[n.Name()])
		last := observe.Usage(n, reads[0], reads[len(reads)-1], nil)
		one.MemoryPeakBytes, one.OOMKills = last.MemoryPeakBytes, last.OOMKills
		if one.Log != "" {
			one.Log = r.comparison.folder.Rel(one.Log)
		}
		r.run.Nodes = append(r.run.Nodes, one)
		r.run.LimitsInForce = r.run.LimitsInForce && one.Enforced
	}
	r.run.HostLoad = observe.Others(r.machineFirst, r.machineEnd, r.run.Nodes)
	r.run.Disk = observe.BusiestDisk(r.machineFirst, r.machineEnd)
	r.run.Warnings = append(r.run.Warnings, observe.UsageWarnings(r.run.Nodes)...)
	if why := node.Unenforced(r.Runtime); why != "" {
		r.run.Warnings = append(r.run.Warnings, why)
	}
}

// saveRaw keeps the raw counter and cgroup reads that the figures come from.
func (r *round) saveRaw() error {
	var problems []error
	for name, s := range map[string]observe.Snapshot{
		"collector-before.prom": r.atFirst, "collector-window-start.prom": r.atStart,
		"collector-window-end.prom": r.atEnd, "collector-after.prom": r.atLast,
		"machine-before.prom": r.machineFirst, "machine-window-end.prom": r.machineEnd,
	} {
		if s.Raw != nil {
			problems = append(problems, record.WriteFile(filepath.Join(r.folder.Dir, name), s.Raw), r.sum(name))
		}
	}
	if r.usageStart != nil {
		problems = append(problems, r.saveJSON("usage-window-start.json", r.usageStart))
	}
	return errors.Join(append(problems, r.saveJSON("usage.json", r.usage))...)
}

func (r *round) saveJSON(name string, value any) error {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	if err := record.WriteFile(filepath.Join(r.folder.Dir, name), data); err != nil {
		return err
	}
	return r.sum(name)
}

// sumLogs adds the logs, which are complete when everything has ended. What LAB_KEEP leaves up goes
// on writing; then the record vouches for what there is now.
func (r *round) sumLogs() error {
	sum := r.comparison.folder.Sum
	if r.keep {
		sum = r.comparison.folder.SumGrowing
	}
	logs, err := os.ReadDir(r.folder.Logs)
	problems := []error{err}
	for _, log := range logs {
		file, err := sum(filepath.Join(r.folder.Logs, log.Name()))
		if problems = append(problems, err); err == nil {
			r.run.Files = append(r.run.Files, file)
		}
	}
	return errors.Join(problems...)
}

// sum adds a file of the run's folder, with its checksum, to the record.
func (r *round) sum(name string) error {
	file, err := r.comparison.folder.Sum(filepath.Join(r.folder.Dir, name))
	if err == nil {
		r.run.Files = append(r.run.Files, file)
	}
	return err
}

// salvage saves what an interrupted or broken round already knows: the outcomes so far and the
// nodes' state. Nothing was read back, so the verdict stays unknown.
func (r *round) salvage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), salvageWithin)
	defer cancel()
	note := func(err error) {
		if err != nil {
			r.run.Warnings = append(r.run.Warnings, "saving what was measured: "+err.Error())
		}
	}
	if r.usage != nil && r.book == nil && r.Load.Exit() == "" {
		note(r.remote.Stop(ctx, 0))
		_, err := r.remote.Wait(ctx, progressEvery, nil) // its totals are complete only when it is done
		note(err)
		note(r.collectOutcomes(ctx))
	}
	if r.book != nil && r.run.Ledger.Generated == 0 {
		r.judge(backend.ReadResult{})
	}
	note(r.closeSeries())
	if r.usage != nil && r.run.Nodes == nil {
		r.readUsage(ctx)
		r.recordNodes(ctx)
		note(r.saveRaw())
	}
}
