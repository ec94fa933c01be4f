package exporter

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Goal: every answer of an HTTP server is understood, and the connection is kept where it may be.
func TestPosterUnderstandsAnswers(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		want   string // in the error; "" = taken
		conns  int    // for three requests
	}{
		{"accepted", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, "", 1},
		{"with a body", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 1000))
		}, "", 1},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "", 1},
		{"chunked", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "late")
		}, "", 3},
		{"refused", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "bad spans", 400)
		}, "HTTP 400: bad spans", 3},
		{"closing", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(202)
		}, "", 3},
		{"cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "closed before an answer", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			conns := 0
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != "spans" || r.URL.Query().Get("format") != "jaeger.thrift" {
					t.Errorf("request %v with body %q: %v", r.URL, body, err)
				}
				test.answer(w, r)
			}))
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					conns++
				}
			}
			server.Start()
			p := newPoster(server.Listener.Addr().String())
			for range 3 {
				err := p.send(time.Time{}, []byte("spans"))
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
			}
			_ = p.close()
			server.Close()
			if conns != test.conns {
				t.Errorf("%d connections, want %d", conns, test.conns)
			}
		})
	}
}

// A receiver that never answers ends the export with its deadline.
func TestPosterKeepsTheDeadline(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	e := NewHTTP(listener.Addr().String(), Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = e.ExportSpans(ctx, bulk(1, 1))
	if err == nil || !strings.Contains(err.Error(), "timeout") || e.Totals().Failed != 1 {
		t.Errorf("%v, totals %+v", err, e.Totals())
	}
}

// Goal: requests over a kept connection allocate nothing, the answer's body included.
func TestPostAllocatesNothing(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go answerAll(listener)
	p := newPoster(listener.Addr().String())
	defer p.close()
	body := []byte("spans")
	post := func() {
		if err := p.send(time.Time{}, body); err != nil {
			t.Error(err)
		}
	}
	post()
	if allocs := testing.AllocsPerRun(20, post); allocs > 0 {
		t.Errorf("%v allocations for a request", allocs)
	}
}

// answerAll is an HTTP server of one connection that allocates nothing for a request.
func answerAll(listener net.Listener) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	request, end := make([]byte, 1<<10), []byte("spans")
	answer := []byte("HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\ndone")
	for {
		for got := 0; !bytes.HasSuffix(request[:got], end); {
			n, err := conn.Read(request[got:])
			if err != nil {
				return
			}
			got += n
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}
