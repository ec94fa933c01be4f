package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"jaegerlab/lab/protocol"
)

// Paths of the load node.
const (
	pathHealth   = "/healthz"  // GET: 200 once it serves
	pathStart    = "/start"    // POST a Job: 202; 400 impossible, 409 one is running
	pathProgress = "/progress" // GET: Progress
	pathOutcomes = "/outcomes" // GET: the stream of result.go, complete or so far; 404 before the first job
	pathStop     = "/stop"     // POST ?grace_ms=N: end the load early, requests in flight have N ms
	pathClock    = "/clock"    // GET: nanoseconds since the epoch
	pathMetrics  = "/metrics"  // GET: Prometheus
)

const (
	maxJobBytes    = 1 << 20
	readLimit      = 10 * time.Second
	shutdownWithin = 5 * time.Second
	lastGrace      = 2 * time.Second // requests in flight when the program is told to end
)

// Serve is the load node's program: it listens on listenAddr and runs one job after another until
// ctx ends. It writes a line for each job to logTo. Outcomes of the last job stay readable until
// the next one starts.
func Serve(ctx context.Context, listenAddr string, logTo io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listenAddr)
	if err != nil {
		return fmt.Errorf("serve the load node: listen on %s: %w; choose another address with --listen", listenAddr, err)
	}
	return serve(ctx, listener, logTo)
}

func serve(ctx context.Context, listener net.Listener, logTo io.Writer) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s := &server{life: life, log: slog.New(slog.NewTextHandler(logTo, nil)), metrics: newMetrics()}
	h := &http.Server{Handler: s.routes(), ReadHeaderTimeout: readLimit, ReadTimeout: readLimit}
	served := make(chan error, 1)
	go func() { served <- h.Serve(listener) }()
	s.log.Info("load node is up", "address", listener.Addr().String())
	select {
	case err := <-served:
		s.finish()
		return fmt.Errorf("serve the load node on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	s.finish()
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	if err := h.Shutdown(shutdown); err != nil {
		_ = h.Close()
	}
	<-served
	return nil
}

// server holds the current job.
type server struct {
	life    context.Context
	log     *slog.Logger
	metrics *metrics

	mu  sync.Mutex
	run *run // nil before the first job
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathHealth, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET "+pathClock, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, time.Now().UnixNano())
	})
	mux.HandleFunc("POST "+pathStart, s.start)
	mux.HandleFunc("POST "+pathStop, s.stop)
	mux.HandleFunc("GET "+pathProgress, s.progress)
	mux.HandleFunc("GET "+pathOutcomes, s.outcomes)
	mux.Handle("GET "+pathMetrics, promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	return mux
}

func (s *server) current() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

func (s *server) start(w http.ResponseWriter, r *http.Request) {
	var job Job
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJobBytes))
	if err := decoder.Decode(&job); err != nil {
		http.Error(w, fmt.Sprintf("start load: read the job: %v", err), http.StatusBadRequest)
		return
	}
	if err := s.begin(job); err != nil {
		code := http.StatusBadRequest
		if errors.Is(err, errBusy) {
			code = http.StatusConflict
		}
		s.log.Warn("job refused", "cause", err)
		http.Error(w, err.Error(), code)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

var errBusy = errors.New("start load: a job is running; wait for it, or stop it first")

func (s *server) begin(job Job) error {
	if err := job.Check(); err != nil {
		return err
	}
	proto, err := protocol.Get(job.Client)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil && s.run.busy() {
		return errBusy
	}
	next, err := start(s.life, job, proto, s.metrics)
	if err != nil {
		return err
	}
	s.run = next
	s.log.Info("load starts", "client", job.Client, "target", job.Target, "workers", job.Load.Concurrency,
		"spans_per_trace", job.Numbering.Width, "warmup_s", job.Load.WarmupS, "duration_s", job.Load.DurationS)
	go s.logEnd(next)
	return nil
}

func (s *server) logEnd(r *run) {
	<-r.done
	p := r.progress()
	s.log.Info("load ended", "complete", p.Complete, "generated", p.Generated, "acked", p.Acked,
		"refused", p.Refused, "unanswered", p.Unanswered)
}

// finish stops the current job and waits for it.
func (s *server) finish() {
	if r := s.current(); r != nil {
		r.stop(lastGrace)
		<-r.done
	}
}

func (s *server) stop(w http.ResponseWriter, r *http.Request) {
	ms, err := strconv.Atoi(r.FormValue("grace_ms"))
	if err != nil || ms < 0 {
		http.Error(w, fmt.Sprintf("stop load: grace_ms is %q; accepted: milliseconds from 0", r.FormValue("grace_ms")),
			http.StatusBadRequest)
		return
	}
	if current := s.current(); current != nil {
		current.stop(time.Duration(ms) * time.Millisecond)
	}
}

func (s *server) progress(w http.ResponseWriter, _ *http.Request) {
	p := Progress{State: Idle}
	if r := s.current(); r != nil {
		p = r.progress()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p)
}

func (s *server) outcomes(w http.ResponseWriter, _ *http.Request) {
	r := s.current()
	if r == nil {
		http.Error(w, "read outcomes: no job was started yet", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	if err := r.write(w); err != nil {
		s.log.Warn("outcomes not read to the end", "cause", err)
	}
}
