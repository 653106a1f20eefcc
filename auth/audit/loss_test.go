package audit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/client/kubeconfig"
)

// losing is a Log that a test makes lose events.
type losing struct {
	*audit.Log
	t    *testing.T
	made int
	text *bytes.Buffer // what was logged

	mu  sync.Mutex // guards now
	now time.Time
}

func newLosing(t *testing.T, rules string, sinks ...audit.Sink) *losing {
	l := &losing{t: t, text: &bytes.Buffer{}, now: time.Unix(1_700_000_000, 0)}
	var err error
	l.Log, err = audit.Open(audit.Config{Policy: policy(t, rules), Sinks: sinks, Names: names.Kubernetes,
		Logger: slog.New(slog.NewTextHandler(l.text, nil)),
		Now: func() time.Time {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.now
		}})
	require.NoError(t, err)
	return l
}

func (l *losing) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

// record makes one event.
func (l *losing) record() {
	l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"})
	l.made++
}

// until records until something holds.
func (l *losing) until(holds func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !holds() {
		require.NoError(l.t, ctx.Err())
		l.record()
		runtime.Gosched()
	}
}

// metrics is the page that shows them.
func (l *losing) metrics() string {
	reg := prometheus.NewRegistry()
	require.NoError(l.t, reg.Register(l.Log))
	page := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	return page.Body.String()
}

// TestLossesAreLoggedOnceAMinute has a sink that fails for hours.
func TestLossesAreLoggedOnceAMinute(t *testing.T) {
	l := newLosing(t, "rules: [{level: Metadata}]", &memory{fail: errors.New("no")})
	const minutes = 5
	for range minutes {
		for range 100 {
			before := l.Dropped()
			l.record()
			for l.Dropped() == before {
				runtime.Gosched()
			}
		}
		l.pass(time.Minute)
	}
	require.NoError(t, l.Close(t.Context()))
	assert.Equal(t, minutes, strings.Count(l.text.String(), "audit events are lost"))
	assert.Contains(t, l.text.String(), "events=100 total=401")
}

// TestHangingWebhook has a server that takes a call and never answers: what
// waits is bounded in bytes, and the end does not wait for it.
func TestHangingWebhook(t *testing.T) {
	asked, release := make(chan struct{}, 100), make(chan struct{})
	web := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer web.Close()
	defer close(release)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	c, err := kubeconfig.Parse([]byte(`clusters: [{name: c, cluster: {server: "`+web.URL+`", certificate-authority-data: "`+ca+`"}}]`), "")
	require.NoError(t, err)
	hook, err := audit.NewWebhook(c, names.Kubernetes)
	require.NoError(t, err)
	l := newLosing(t, "omitStages: [RequestReceived]\nrules: [{level: RequestResponse}]", hook)

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	object := `"` + strings.Repeat("x", 500_000) + `"`
	const n = 80 // 40 MB
	for range n {
		trail := l.Begin(httptest.NewRequest("POST", "/", nil), "my-id", auth.Attributes{Verb: "create", Resource: "pods"})
		trail.Request(body(object))
		trail.Complete(auth.Outcome{Code: 201})
	}
	<-asked
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(24<<20))
	assert.Greater(t, l.Dropped(), uint64(n/2))
	assert.ErrorContains(t, l.Check(t.Context()), "more events than the sink takes")
	assert.Contains(t, l.metrics(), fmt.Sprintf("apiserver_audit_error_total{plugin=\"webhook\"} %d\n", l.Dropped()))

	l.pass(2 * time.Minute)
	assert.ErrorContains(t, l.Check(t.Context()), "has not taken a batch for 2m0s")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, l.Close(ctx), context.Canceled)
	assert.EqualValues(t, n, l.Dropped(), "none arrived")
	assert.Contains(t, l.text.String(), "audit events are lost")
}

// stubborn is a sink that heeds nothing.
type stubborn struct{ release chan struct{} }

func (s stubborn) Write(context.Context, [][]byte) error { <-s.release; return nil }
func (s stubborn) Close() error                          { return nil }

// TestStubbornSink: neither does it hold up the end, nor the other sinks.
func TestStubbornSink(t *testing.T) {
	s, fine := stubborn{make(chan struct{})}, &memory{}
	defer close(s.release)
	l := newLosing(t, "rules: [{level: Metadata}]", s, fine)
	l.record()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, l.Close(ctx), context.DeadlineExceeded)
	fine.mu.Lock()
	defer fine.mu.Unlock()
	assert.Len(t, fine.events, 1)
}
