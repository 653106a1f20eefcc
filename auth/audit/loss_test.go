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
	"testing/synctest"
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

// lossyLog is a Log with a clock of the test. The test makes it lose events.
type lossyLog struct {
	*audit.Log
	t    *testing.T
	made int           // events recorded
	text *bytes.Buffer // output of the Logger

	mu  sync.Mutex // guards now
	now time.Time
}

func newLossyLog(t *testing.T, rules string, sinks ...audit.Sink) *lossyLog {
	l := &lossyLog{t: t, text: &bytes.Buffer{}, now: time.Unix(1_700_000_000, 0)}
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

// advance moves the clock.
func (l *lossyLog) advance(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

// record records one event.
func (l *lossyLog) record() {
	l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"})
	l.made++
}

// recordUntil records events until the condition holds.
func (l *lossyLog) recordUntil(holds func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !holds() {
		require.NoError(l.t, ctx.Err())
		l.record()
		runtime.Gosched()
	}
}

// metrics returns the metrics page of the Log.
func (l *lossyLog) metrics() string {
	reg := prometheus.NewRegistry()
	require.NoError(l.t, reg.Register(l.Log))
	page := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	return page.Body.String()
}

// TestLossesAreLoggedOnceAMinute checks the log lines while a sink fails for
// minutes.
func TestLossesAreLoggedOnceAMinute(t *testing.T) {
	l := newLossyLog(t, "rules: [{level: Metadata}]", &memory{fail: errors.New("no")})
	const minutes = 5
	for range minutes {
		for range 100 {
			before := l.Dropped()
			l.record()
			for l.Dropped() == before {
				runtime.Gosched()
			}
		}
		l.advance(time.Minute)
	}
	require.NoError(t, l.Close(t.Context()))
	assert.Equal(t, minutes, strings.Count(l.text.String(), "audit events lost"))
	assert.Contains(t, l.text.String(), "events=100 total=401")
}

// TestHangingWebhookIsBounded checks a webhook server that does not answer: the
// queue is bounded in bytes, and Close returns when its context ends.
func TestHangingWebhookIsBounded(t *testing.T) {
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
	hook.Backoff = time.Hour // a call that times out keeps its events
	l := newLossyLog(t, "omitStages: [RequestReceived]\nrules: [{level: RequestResponse}]", hook)

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
	assert.ErrorContains(t, l.Check(t.Context()), "queue is full")
	assert.Contains(t, l.metrics(), fmt.Sprintf("apiserver_audit_error_total{plugin=\"webhook\"} %d\n", l.Dropped()))

	assert.Contains(t, l.text.String(), "audit events lost")

	l.advance(2 * time.Minute)
	assert.ErrorContains(t, l.Check(t.Context()), "has been writing one batch for 2m0s")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, l.Close(ctx), context.Canceled)
	assert.Eventually(t, func() bool { return l.Dropped() == n }, time.Minute, time.Millisecond, "no event was written")
}

// hangingSink is a Sink whose Write ignores its context.
type hangingSink struct{ release chan struct{} }

func (s hangingSink) Write(context.Context, [][]byte) error { <-s.release; return nil }
func (s hangingSink) Close() error                          { return nil }

// TestHangingSinkDelaysNeitherCloseNorOtherSinks checks a sink that ignores its
// context.
func TestHangingSinkDelaysNeitherCloseNorOtherSinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fine := hangingSink{make(chan struct{})}, &memory{}
		defer close(s.release)
		l := newLossyLog(t, "rules: [{level: Metadata}]", s, fine)
		l.record()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, l.Close(ctx), context.DeadlineExceeded)
		fine.mu.Lock()
		defer fine.mu.Unlock()
		assert.Len(t, fine.events, 1)
	})
}
