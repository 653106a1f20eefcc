package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/client/kubeconfig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Sink that keeps events.
type memory struct {
	mu     sync.Mutex // guards events
	events []map[string]any
	gate   chan struct{} // if set, Write receives from it first
	fail   error         // returned by Write
}

func (m *memory) Write(ctx context.Context, events [][]byte) error {
	if m.gate != nil {
		select {
		case <-m.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		var v map[string]any
		if err := json.Unmarshal(e, &v); err != nil {
			return err
		}
		m.events = append(m.events, v)
	}
	return m.fail
}

func (m *memory) Close() error { return nil }

// record opens a Log with a fixed clock, calls use, closes the Log and returns its
// events. No event may be lost.
func record(t *testing.T, rules string, use func(l *audit.Log)) []map[string]any {
	m := &memory{}
	l, err := audit.Open(audit.Config{Policy: policy(t, rules), Sinks: []audit.Sink{m}, Names: names.Kubernetes,
		Now: func() time.Time { return time.Unix(1_700_000_000, 123456789) }})
	require.NoError(t, err)
	use(l)
	require.NoError(t, l.Close(context.Background()))
	assert.Zero(t, l.Dropped())
	return m.events
}

func body(s string) func() []byte { return func() []byte { return []byte(s) } }

func TestEventHasRequestAndResponse(t *testing.T) {
	r := httptest.NewRequest("POST", "/api/v1/namespaces/ns/pods?dryRun=All", nil)
	r.Header.Set("User-Agent", "kubectl/1.36")
	r.Header.Set("X-Forwarded-For", "10.0.0.1, 10.0.0.2, junk")
	r.RemoteAddr = "127.0.0.1:1234"
	a := auth.Attributes{User: &auth.User{Name: "alice", UID: "1", Groups: []string{"devs"}}, Verb: "create", Version: "v1", Resource: "pods", Namespace: "ns", Name: "p"}
	events := record(t, "rules: [{level: RequestResponse}]", func(l *audit.Log) {
		trail := l.Begin(r, "my-id", a)
		trail.Impersonate(&auth.User{Name: "bob"})
		trail.Annotate("k", "v")
		trail.Annotate("k", "other")
		trail.Concerns("other", "u", "7") // the name in the path stays
		trail.Request(body(`{"kind":"Pod","n":12345678901234567890}`))
		trail.Complete(auth.Outcome{Code: 201, Response: body(`{"kind":"Pod","metadata":{"name":"p"}}`)})
		trail.Complete(auth.Outcome{Code: 500})
	})
	require.Len(t, events, 2)
	got, err := json.Marshal(events[1])
	require.NoError(t, err)
	assert.JSONEq(t, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"my-id","stage":"ResponseComplete",
		"requestURI":"/api/v1/namespaces/ns/pods?dryRun=All","verb":"create","user":{"username":"alice","uid":"1","groups":["devs"]},
		"impersonatedUser":{"username":"bob"},"sourceIPs":["10.0.0.1","10.0.0.2","127.0.0.1"],"userAgent":"kubectl/1.36",
		"objectRef":{"resource":"pods","namespace":"ns","name":"p","uid":"u","apiVersion":"v1","resourceVersion":"7"},"responseStatus":{"metadata":{},"code":201},
		"requestObject":{"kind":"Pod","n":12345678901234567890},"responseObject":{"kind":"Pod","metadata":{"name":"p"}},
		"requestReceivedTimestamp":"2023-11-14T22:13:20.123456Z","stageTimestamp":"2023-11-14T22:13:20.123456Z","annotations":{"k":"v"}}`, string(got))
	assert.Equal(t, "RequestReceived", events[0]["stage"])
	assert.NotContains(t, events[0], "requestObject")
	assert.NotContains(t, events[0], "responseStatus")
}

func TestLevelSelectsObjects(t *testing.T) {
	a := auth.Attributes{User: &auth.User{Name: "alice"}, Verb: "update", Version: "v1", Resource: "pods"}
	for level, want := range map[string][]bool{"Metadata": {false, false}, "Request": {true, false}, "RequestResponse": {true, true}} {
		events := record(t, "omitStages: [RequestReceived]\nrules: [{level: "+level+"}]", func(l *audit.Log) {
			trail := l.Begin(httptest.NewRequest("PUT", "/", nil), "my-id", a)
			asked := []bool{false, false}
			trail.Request(func() []byte { asked[0] = true; return []byte(`{}`) })
			trail.Complete(auth.Outcome{Code: 200, Response: func() []byte { asked[1] = true; return []byte(`{}`) }})
			assert.Equal(t, want, asked, "bodies are encoded only if the level includes them")
		})
		require.Len(t, events, 1, level)
		assert.Equal(t, level, events[0]["level"])
		assert.Equal(t, want[0], events[0]["requestObject"] != nil, level)
		assert.Equal(t, want[1], events[0]["responseObject"] != nil, level)
	}
	events := record(t, "rules: [{level: None}]", func(l *audit.Log) {
		trail := l.Begin(httptest.NewRequest("PUT", "/", nil), "my-id", a)
		trail.Impersonate(a.User)
		trail.Annotate("k", "v")
		trail.Concerns("n", "u", "7")
		trail.Request(func() []byte { t.Error("level None encoded the body"); return nil })
		trail.Started(200)
		trail.Complete(auth.Outcome{Code: 200})
	})
	assert.Empty(t, events)
}

func TestStagesCanBeOmitted(t *testing.T) {
	names := func(events []map[string]any) (out []string) {
		for _, e := range events {
			out = append(out, e["stage"].(string))
		}
		return out
	}
	watch := func(l *audit.Log) {
		trail := l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "watch", Resource: "pods"})
		trail.Started(200)
		trail.Complete(auth.Outcome{Code: 200})
	}
	assert.Equal(t, []string{"RequestReceived", "ResponseStarted", "ResponseComplete"}, names(record(t, "rules: [{level: Metadata}]", watch)))
	assert.Equal(t, []string{"ResponseComplete"}, names(record(t, "omitStages: [RequestReceived]\nrules: [{level: Metadata, omitStages: [ResponseStarted]}]", watch)))
	events := record(t, "rules: [{level: Metadata}]", func(l *audit.Log) {
		l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"}).Complete(auth.Outcome{Code: 500, Panicked: true})
	})
	assert.Equal(t, []string{"RequestReceived", "Panic"}, names(events))
	assert.Equal(t, "InternalError", events[1]["responseStatus"].(map[string]any)["reason"])
}

func TestPatchAnnotationNeedsLevelRequest(t *testing.T) {
	for level, want := range map[string]int{"Metadata": 1, "Request": 2} {
		events := record(t, "omitStages: [RequestReceived]\nrules: [{level: "+level+"}]", func(l *audit.Log) {
			trail := l.Begin(httptest.NewRequest("POST", "/", nil), "my-id", auth.Attributes{Verb: "create", Resource: "pods"})
			trail.Annotate("mutation.webhook.admission.k8s.io/round_0_index_0", "{}")
			trail.Annotate("patch.webhook.admission.k8s.io/round_0_index_0", "{}")
			trail.Complete(auth.Outcome{Code: 201})
		})
		assert.Len(t, events[0]["annotations"], want, level)
	}
}

func TestEventOfFailureHasStatus(t *testing.T) {
	events := record(t, "rules: [{level: Metadata}]", func(l *audit.Log) {
		trail := l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Resource: "pods"})
		trail.Complete(auth.Outcome{Code: 404, Err: meta.NotFound(meta.GroupResource{Resource: "pods"}, "p")})
	})
	got, err := json.Marshal(events[1]["responseStatus"])
	require.NoError(t, err)
	assert.JSONEq(t, `{"metadata":{},"status":"Failure","message":"pods \"p\" not found","reason":"NotFound","details":{"name":"p","kind":"pods"},"code":404}`, string(got))
	assert.Equal(t, map[string]any{}, events[1]["user"], "the request has no user")
}

func TestManagedFieldsCanBeOmitted(t *testing.T) {
	obj := `{"metadata":{"name":"p","managedFields":[{"manager":"x"}]},"big":9007199254740993}`
	lists := `{"items":[` + obj + `]}`
	for rule, kept := range map[string]bool{"omitManagedFields: true\nrules: [{level: RequestResponse}]": false,
		"omitManagedFields: true\nrules: [{level: RequestResponse, omitManagedFields: false}]": true,
		"rules: [{level: RequestResponse, omitManagedFields: true}]":                           false} {
		events := record(t, rule, func(l *audit.Log) {
			trail := l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "list", Resource: "pods"})
			trail.Request(body(obj))
			trail.Complete(auth.Outcome{Code: 200, Response: body(lists)})
		})
		text, err := json.Marshal(events[1])
		require.NoError(t, err)
		assert.Equal(t, kept, strings.Contains(string(text), "managedFields"), rule)
	}
}

func TestEventIsBounded(t *testing.T) {
	events := record(t, "rules: [{level: RequestResponse}]", func(l *audit.Log) {
		r := httptest.NewRequest("GET", "/?q="+strings.Repeat("a", 100_000), nil)
		r.Header.Set("User-Agent", strings.Repeat("u", 100_000))
		for i := range 1000 {
			r.Header.Add("X-Forwarded-For", fmt.Sprintf("10.0.%d.%d", i/256, i%256))
		}
		trail := l.Begin(r, "my-id", auth.Attributes{Verb: "get", Path: "/"})
		for i := range 1000 {
			trail.Annotate(fmt.Sprint(i), strings.Repeat("v", 100_000))
		}
		trail.Request(body(`"` + strings.Repeat("x", 2<<20) + `"`))
		trail.Complete(auth.Outcome{Code: 200, Response: body(`no JSON`)})
	})
	text, err := json.Marshal(events[1])
	require.NoError(t, err)
	assert.Less(t, len(text), 1<<20)
	assert.NotContains(t, events[1], "requestObject")
	assert.NotContains(t, events[1], "responseObject")
	assert.Len(t, events[1]["sourceIPs"], 16)
}

func TestSlowSinkDoesNotBlockRequests(t *testing.T) {
	stuck, fine := &memory{gate: make(chan struct{})}, &memory{}
	l, err := audit.Open(audit.Config{Policy: policy(t, "rules: [{level: Metadata}]"), Sinks: []audit.Sink{stuck, fine}, Names: names.Kubernetes})
	require.NoError(t, err)
	const n = 30_000
	for range n / 2 {
		l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"}).Complete(auth.Outcome{Code: 200})
	}
	assert.Greater(t, l.Dropped(), uint64(n-10_000-2000), "events that exceed the stuck sink's queue are dropped and counted")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, l.Close(ctx), context.Canceled)
	dropped := l.Dropped()
	l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"})
	assert.Equal(t, dropped+2, l.Dropped(), "after Close")
	assert.NoError(t, l.Close(context.Background()), "second Close")
}

func TestFailingSinkLosesBatch(t *testing.T) {
	m := &memory{fail: errors.New("disk full")}
	l, err := audit.Open(audit.Config{Policy: policy(t, "rules: [{level: Metadata}]"), Sinks: []audit.Sink{m}, Names: names.Kubernetes})
	require.NoError(t, err)
	l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"})
	require.NoError(t, l.Close(context.Background()))
	assert.Equal(t, uint64(1), l.Dropped())
	_, err = audit.Open(audit.Config{})
	assert.Error(t, err)
}

// panickingSink is a Sink whose Write panics.
type panickingSink struct{}

func (panickingSink) Write(context.Context, [][]byte) error { panic("out of paper") }
func (panickingSink) Close() error                          { return nil }

// TestPanickingSinkLosesBatch checks that the events of a Write that panics count
// as lost, and that the Log continues.
func TestPanickingSinkLosesBatch(t *testing.T) {
	l, err := audit.Open(audit.Config{Policy: policy(t, "rules: [{level: Metadata}]"), Sinks: []audit.Sink{panickingSink{}}, Names: names.Kubernetes})
	require.NoError(t, err)
	for range 3 {
		l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"})
	}
	require.NoError(t, l.Close(context.Background()))
	assert.Equal(t, uint64(3), l.Dropped())
}

func TestTrailsAreConcurrent(t *testing.T) {
	events := record(t, "rules: [{level: RequestResponse}]", func(l *audit.Log) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					trail := l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"})
					var in sync.WaitGroup
					in.Go(func() { trail.Annotate("a", "b") })
					trail.Request(body("{}"))
					in.Wait()
					trail.Complete(auth.Outcome{Code: 200})
				}
			})
		}
		wg.Wait()
	})
	assert.Len(t, events, 800)
}

func TestFileRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit[1].log")
	now := time.Unix(1_700_000_000, 0)
	f, err := audit.OpenFile(path, audit.FileOptions{MaxSize: 30, MaxBackups: 2, Now: func() time.Time { now = now.Add(time.Second); return now }})
	require.NoError(t, err)
	for i := range 6 {
		require.NoError(t, f.Write(context.Background(), [][]byte{[]byte(fmt.Sprintf(`{"n":%d}`, i)), []byte(`{"m":1}`)}))
	}
	require.NoError(t, f.Close())
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, files, 3, "the file and two rotated files")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "{\"n\":5}\n{\"m\":1}\n", string(data))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	again, err := audit.OpenFile(path, audit.FileOptions{})
	require.NoError(t, err)
	require.NoError(t, again.Write(context.Background(), [][]byte{[]byte("x")}))
	require.NoError(t, again.Close())
	data, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(string(data), "{\"m\":1}\nx\n"), "appended")
	_, err = audit.OpenFile("/no/such/dir/file", audit.FileOptions{})
	assert.Error(t, err)
}

func TestFileRemovesAgedBackups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	old := strings.TrimSuffix(path, ".log") + "-2001-01-01T00-00-00.000000000.log"
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, os.Chtimes(old, time.Unix(0, 0), time.Unix(0, 0)))
	f, err := audit.OpenFile(path, audit.FileOptions{MaxSize: 1, MaxAge: time.Hour})
	require.NoError(t, err)
	require.NoError(t, f.Write(context.Background(), [][]byte{[]byte("a")}))
	require.NoError(t, f.Write(context.Background(), [][]byte{[]byte("b")}))
	require.NoError(t, f.Close())
	_, err = os.Stat(old)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestWebhookRetries(t *testing.T) {
	var calls atomic.Int32
	var items atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(503)
			return
		}
		var l struct {
			Kind, APIVersion string
			Items            []map[string]any
		}
		data, _ := io.ReadAll(r.Body)
		if json.Unmarshal(data, &l) != nil || l.Kind != "EventList" || l.APIVersion != "audit.k8s.io/v1" {
			w.WriteHeader(400)
			return
		}
		items.Add(int32(len(l.Items)))
	}))
	defer s.Close()
	c, err := kubeconfig.Parse([]byte(`clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]`), "")
	require.NoError(t, err)
	hook, err := audit.NewWebhook(c, names.Kubernetes)
	require.NoError(t, err)
	hook.Wait, hook.Backoff = time.Millisecond, time.Millisecond
	l, err := audit.Open(audit.Config{Policy: policy(t, "rules: [{level: Metadata}]"), Sinks: []audit.Sink{hook}, Names: names.Kubernetes})
	require.NoError(t, err)
	for range 100 {
		l.Begin(httptest.NewRequest("GET", "/", nil), "my-id", auth.Attributes{Verb: "get", Path: "/"})
	}
	require.NoError(t, l.Close(context.Background()))
	assert.Equal(t, int32(100), items.Load())
	assert.Zero(t, l.Dropped())
}

func TestWebhookGivesUpAfterTries(t *testing.T) {
	var calls atomic.Int32
	code := 400
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.WriteHeader(code)
	}))
	defer s.Close()
	c, err := kubeconfig.Parse([]byte(`clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]`), "")
	require.NoError(t, err)
	hook, err := audit.NewWebhook(c, names.Kubernetes)
	require.NoError(t, err)
	hook.Backoff = time.Millisecond
	assert.Error(t, hook.Write(context.Background(), [][]byte{[]byte("{}")}))
	assert.Equal(t, int32(1), calls.Load(), "code 400 is not retried")
	code = 500
	assert.Error(t, hook.Write(context.Background(), [][]byte{[]byte("{}")}))
	assert.Equal(t, int32(5), calls.Load())
	require.NoError(t, hook.Close())
	empty, err := kubeconfig.Parse([]byte(`{}`), "")
	require.NoError(t, err)
	_, err = audit.NewWebhook(empty, names.Kubernetes)
	assert.Error(t, err)
}

func BenchmarkRecord(b *testing.B) {
	l, err := audit.Open(audit.Config{Policy: policy(b, "omitStages: [RequestReceived]\nrules: [{level: Metadata}]"),
		Sinks: []audit.Sink{audit.Writer{W: io.Discard}}, Names: names.Kubernetes})
	require.NoError(b, err)
	r := httptest.NewRequest("GET", "/api/v1/namespaces/ns/pods/p", nil)
	a := auth.Attributes{User: &auth.User{Name: "alice", Groups: []string{"devs"}}, Verb: "get", Version: "v1", Resource: "pods", Namespace: "ns", Name: "p"}
	for b.Loop() {
		l.Begin(r, "my-id", a).Complete(auth.Outcome{Code: 200})
	}
	require.NoError(b, l.Close(context.Background()))
}

func ExampleOpen() {
	policy, err := audit.ParsePolicy([]byte(`
apiVersion: audit.orch.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ["/healthz*"]}
- {level: Metadata}
`), names.Orch)
	if err != nil {
		panic(err)
	}
	var out bytes.Buffer
	l, err := audit.Open(audit.Config{Policy: policy, Sinks: []audit.Sink{audit.Writer{W: &out}}})
	if err != nil {
		panic(err)
	}
	for _, path := range []string{"/healthz", "/version"} {
		trail := l.Begin(httptest.NewRequest("GET", path, nil), "my-id", auth.Attributes{User: auth.NewAnonymous(), Verb: "get", Path: path})
		trail.Complete(auth.Outcome{Code: 200})
	}
	l.Close(context.Background())
	var e struct {
		Stage, RequestURI string
		User              struct{ Username string }
	}
	json.Unmarshal(out.Bytes(), &e)
	fmt.Println(e.Stage, e.RequestURI, e.User.Username)
	// Output: ResponseComplete /version system:anonymous
}
