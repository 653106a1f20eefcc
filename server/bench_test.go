package server_test

import (
	"strconv"

	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/badgerstore"

	"orch.io/controlplane/server/internal/apitest"
)

// Each benchmark alternates between the server and a bare net/http handler that writes the same
// bytes, and reports of-limit: the time of the bare handler divided by the time of the server. On a
// shared machine this ratio is stable, while absolute figures are not.

// pair is a server and the bare handler to compare it with, each behind a loopback socket.
type pair struct {
	ours, limit *httptest.Server
	client      *http.Client
}

func newPair(b *testing.B, s http.Handler, limit http.HandlerFunc) *pair {
	p := &pair{httptest.NewServer(s), httptest.NewServer(limit), &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, DisableCompression: true,
	}}}
	b.Cleanup(func() {
		p.client.CloseIdleConnections()
		p.limit.Close()
		p.ours.CloseClientConnections()
		p.ours.Close()
	})
	return p
}

func (p *pair) get(b *testing.B, url string) {
	res, err := p.client.Get(url)
	if err != nil {
		b.Error(err)
		return
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		b.Errorf("GET %s: %d %v", url, res.StatusCode, err)
	}
	_ = res.Body.Close()
}

// compare makes b.N requests to each side, in alternating rounds, and reports the ratio.
func (p *pair) compare(b *testing.B, path string) {
	var ours, limit time.Duration
	const rounds = 8
	run := func(url string, n int) time.Duration {
		begun := time.Now()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range (n + 7) / 8 {
					p.get(b, url)
				}
			})
		}
		wg.Wait()
		return time.Since(begun)
	}
	run(p.ours.URL+path, 16)
	run(p.limit.URL+path, 16)
	b.ResetTimer()
	for range rounds {
		ours += run(p.ours.URL+path, max(8, b.N/rounds))
		b.StopTimer()
		limit += run(p.limit.URL+path, max(8, b.N/rounds))
		b.StartTimer()
	}
	b.ReportMetric(float64(limit)/float64(ours), "of-limit")
}

func configMap(name string, size int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"bench"}},"data":{"value":%q}}`, name, strings.Repeat("x", size))
}

func post(b testing.TB, c *http.Client, url, body string) {
	b.Helper()
	res, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	answer, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		b.Fatalf("POST %s: %d %s", url, res.StatusCode, answer)
	}
}

func fill(b testing.TB, s *servertest.Server, n int) {
	b.Helper()
	for i := range n {
		post(b, s.Client(), s.Host()+"/api/v1/namespaces/default/configmaps", configMap(fmt.Sprintf("c%06d", i), 1024))
	}
}

func fetch(b testing.TB, s *servertest.Server, path string) []byte {
	b.Helper()
	return fetchAs(b, s.Client(), s, path)
}

func fetchAs(b testing.TB, c *http.Client, s *servertest.Server, path string) []byte {
	b.Helper()
	res, err := c.Get(s.Host() + path)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("GET %s: %d %v", path, res.StatusCode, err)
	}
	return body
}

func echo(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body)
	}
}

// BenchmarkStart measures Build, the first request and Shutdown, with all built-in kinds and a
// memory store.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
		s.Register(builtin.Kinds()...)
		built, err := s.Build(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		w := httptest.NewRecorder()
		built.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body.String())
		}
		if err := built.Shutdown(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s := servertest.New(b)
	fill(b, s, 1)
	const path = "/api/v1/namespaces/default/configmaps/c000000"
	newPair(b, s, echo(fetch(b, s, path))).compare(b, path)
}

// BenchmarkGetFullChain measures a GET through the usual access control: a user of the token file,
// whom one of 1000 role bindings allows the request.
func BenchmarkGetFullChain(b *testing.B) {
	users, err := tokenfile.Parse(strings.NewReader("alice,alice,1,devs\nroot,root,2,system:masters\n"))
	if err != nil {
		b.Fatal(err)
	}
	s := servertest.New(b, func(sb *server.Builder) {
		sb.Authorizer = nil
		if err := access.Setup(sb, access.Config{Authenticators: []auth.Authenticator{users}}); err != nil {
			b.Fatal(err)
		}
	})
	root := &http.Client{Transport: bearer{s.Transport(), "root"}}
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	post(b, root, s.Host()+rbac+"clusterroles", `{"metadata":{"name":"reader"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}`)
	for i := range 1000 {
		user := fmt.Sprintf("user%d", i)
		if i == 500 {
			user = "alice"
		}
		post(b, root, s.Host()+rbac+"namespaces/default/rolebindings", fmt.Sprintf(`{"metadata":{"name":"b%d"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},
			"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, i, user))
	}
	post(b, root, s.Host()+"/api/v1/namespaces/default/configmaps", configMap("c000000", 1024))
	p := newPair(b, s, echo(fetchAs(b, root, s, "/api/v1/namespaces/default/configmaps/c000000")))
	p.client.Transport = bearer{p.client.Transport, "alice"}
	p.compare(b, "/api/v1/namespaces/default/configmaps/c000000")
}

// bearer adds a token to every request.
type bearer struct {
	next  http.RoundTripper
	token string
}

func (t bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.next.RoundTrip(r)
}

func BenchmarkList10k(b *testing.B) {
	s := servertest.New(b)
	fill(b, s, 10_000)
	const path = "/api/v1/namespaces/default/configmaps"
	newPair(b, s, echo(fetch(b, s, path))).compare(b, path)
}

// BenchmarkWatchFanout1000 delivers one change to 1,000 watchers. The bare handler writes the same
// event to 1,000 open responses.
func BenchmarkWatchFanout1000(b *testing.B) {
	const watchers = 1000
	s := servertest.New(b)
	fill(b, s, 1)
	frame := append([]byte(`{"type":"MODIFIED","object":`), fetch(b, s, "/api/v1/namespaces/default/configmaps/c000000")...)
	frame = append(frame, "}\n"...)
	hub := newBareHub(frame)
	p := newPair(b, s, hub.ServeHTTP)
	ours, limit := newAudience(b, p, p.ours.URL+"/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0&fieldSelector=metadata.name=c000000", watchers, 1),
		newAudience(b, p, p.limit.URL, watchers, 0)
	hub.await(watchers)
	b.Cleanup(func() { ours.close(); limit.close() })
	var mine, bare time.Duration
	n := 0
	b.ResetTimer()
	for b.Loop() {
		n++
		begun := time.Now()
		patch(b, s, fmt.Sprintf(`{"data":{"n":"%d"}}`, n))
		ours.wait(b)
		mine += time.Since(begun)
		b.StopTimer()
		begun = time.Now()
		hub.publish()
		limit.wait(b)
		bare += time.Since(begun)
		b.StartTimer()
	}
	b.ReportMetric(float64(bare)/float64(mine), "of-limit")
	b.ReportMetric(float64(watchers*n)/mine.Seconds(), "events/s")
}

func patch(b testing.TB, s *servertest.Server, body string) {
	b.Helper()
	r, _ := http.NewRequest(http.MethodPatch, s.Host()+"/api/v1/namespaces/default/configmaps/c000000", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/merge-patch+json")
	res, err := s.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if answer, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		b.Fatalf("PATCH: %d %s", res.StatusCode, answer)
	}
}

// audience is a number of clients, each of which reads lines of a streamed response.
type audience struct {
	cancel context.CancelFunc
	got    chan struct{}
	size   int
	done   sync.WaitGroup
}

// newAudience opens n streams and reads the initial lines of each.
func newAudience(b *testing.B, p *pair, url string, n, initial int) *audience {
	ctx, cancel := context.WithCancel(context.Background())
	a := &audience{cancel: cancel, got: make(chan struct{}, n), size: n}
	var ready sync.WaitGroup
	ready.Add(n)
	for range n {
		a.done.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			res, err := p.client.Do(r)
			if err != nil {
				ready.Done()
				b.Error(err)
				return
			}
			defer res.Body.Close()
			lines := bufio.NewReader(res.Body)
			for range initial {
				if _, err := lines.ReadSlice('\n'); err != nil && err != bufio.ErrBufferFull {
					b.Error(err)
				}
			}
			ready.Done()
			for {
				if _, err := lines.ReadSlice('\n'); err == bufio.ErrBufferFull {
					continue
				} else if err != nil {
					return
				}
				a.got <- struct{}{}
			}
		})
	}
	ready.Wait()
	return a
}

// wait waits until every client has read one more line.
func (a *audience) wait(b *testing.B) {
	for range a.size {
		select {
		case <-a.got:
		case <-time.After(time.Minute):
			b.Fatal("an event did not arrive")
		}
	}
}

func (a *audience) close() {
	a.cancel()
	a.done.Wait()
}

// bareHub is a bare net/http handler that writes the same line to every open response.
type bareHub struct {
	frame []byte
	mu    sync.Mutex
	next  chan struct{}
	open  atomic.Int64
}

func newBareHub(frame []byte) *bareHub { return &bareHub{frame: frame, next: make(chan struct{})} }

func (h *bareHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	flusher := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	_ = flusher.Flush()
	h.mu.Lock()
	next := h.next
	h.mu.Unlock()
	h.open.Add(1)
	for {
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
		h.mu.Lock()
		next = h.next
		h.mu.Unlock()
		if _, err := w.Write(h.frame); err != nil {
			return
		}
		_ = flusher.Flush()
	}
}

func (h *bareHub) await(n int64) {
	for h.open.Load() < n {
		time.Sleep(time.Millisecond)
	}
}

func (h *bareHub) publish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.next)
	h.next = make(chan struct{})
}

// BenchmarkCreateDurable128 has 128 clients create objects in a Badger directory. writes/fsync is
// the average number of writes that share an fsync.
func BenchmarkCreateDurable128(b *testing.B) {
	store, err := badgerstore.Open(badgerstore.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	s := servertest.New(b, func(sb *server.Builder) { sb.Storage = store })
	url := s.Host() + "/api/v1/namespaces/default/configmaps"
	before := store.Stats()
	var serial atomic.Int64
	b.SetParallelism(max(1, 128/runtime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			post(b, s.Client(), url, configMap(fmt.Sprintf("n%d", serial.Add(1)), 1024))
		}
	})
	after := store.Stats()
	b.ReportMetric(float64(after.Commits-before.Commits)/float64(after.Fsyncs-before.Fsyncs), "writes/fsync")
}

// BenchmarkIdleWatcherBytes measures the memory of an idle in-process watch in bytes, including
// stacks.
func BenchmarkIdleWatcherBytes(b *testing.B) {
	s := servertest.New(b)
	measure := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const n = 2000
	before := measure()
	var open []io.Closer
	for range n {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.Host()+"/api/v1/configmaps?watch=true&resourceVersion=0", nil)
		res, err := s.Client().Do(r)
		if err != nil {
			b.Fatal(err)
		}
		open = append(open, res.Body)
	}
	after := measure()
	for b.Loop() {
		runtime.Gosched()
	}
	b.ReportMetric(float64(after-before)/n, "B/watcher")
	for _, c := range open {
		_ = c.Close()
	}
}

func BenchmarkUpdate(b *testing.B) {
	s := servertest.New(b)
	fill(b, s, 1)
	n := 0
	for b.Loop() {
		n++
		put(b, s, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c000000"},"data":{"n":"%d","value":%q}}`, n, strings.Repeat("x", 1024)))
	}
}

func put(b testing.TB, s *servertest.Server, body string) {
	b.Helper()
	r, _ := http.NewRequest(http.MethodPut, s.Host()+"/api/v1/namespaces/default/configmaps/c000000", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	res, err := s.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if answer, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		b.Fatalf("PUT: %d %s", res.StatusCode, answer)
	}
}

func BenchmarkApplyConfigMap(b *testing.B) {
	s := servertest.New(b)
	n := 0
	for b.Loop() {
		n++
		applyBody(b, s, "/api/v1/namespaces/default/configmaps/a", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"n":"%d","value":%q}}`, n, strings.Repeat("x", 1024)))
	}
}

// deploymentBody returns a Deployment with three containers of ten variables each. Only the first
// variable of the first container depends on n.
func deploymentBody(n int) string {
	var containers []string
	for c := range 3 {
		var env []string
		for e := range 10 {
			env = append(env, fmt.Sprintf(`{"name":"VAR_%d","value":"%d"}`, e, n*(1-min(1, c+e))))
		}
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"example.com/image:%d","ports":[{"containerPort":80%d}],`+
			`"resources":{"requests":{"cpu":"100m","memory":"64Mi"}},"env":[%s]}`, c, c, c, strings.Join(env, ",")))
	}
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}},`+
		`"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[%s]}}}}`, strings.Join(containers, ","))
}

func BenchmarkApplyDeployment(b *testing.B) {
	s := servertest.New(b)
	n := 0
	for b.Loop() {
		n++
		applyBody(b, s, "/apis/apps/v1/namespaces/default/deployments/a", deploymentBody(n))
	}
}

func applyBody(b testing.TB, s *servertest.Server, path, body string) {
	b.Helper()
	r, _ := http.NewRequest(http.MethodPatch, s.Host()+path+"?fieldManager=bench", bytes.NewReader([]byte(body)))
	r.Header.Set("Content-Type", "application/apply-patch+yaml")
	res, err := s.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if answer, _ := io.ReadAll(res.Body); res.StatusCode >= 300 {
		b.Fatalf("apply: %d %s", res.StatusCode, answer)
	}
}

// BenchmarkWritersOfOneObject has many clients patch the same object in a Badger directory.
func BenchmarkWritersOfOneObject(b *testing.B) {
	for _, writers := range []int{1, 8, 32, 200} {
		b.Run(strconv.Itoa(writers), func(b *testing.B) {
			store := apitest.OpenBadger(b, b.TempDir())
			s := servertest.New(b, apitest.WithStorage(store))
			post(b, s.Client(), s.Host()+apitest.ConfigMapsPath, configMap("x", 100))
			var next, refused atomic.Int64
			var all sync.WaitGroup
			before := store.Stats()
			b.ResetTimer()
			for w := range writers {
				all.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						r, err := http.NewRequestWithContext(context.Background(), "PATCH", s.Host()+apitest.ConfigMapsPath+"/x", strings.NewReader(fmt.Sprintf(`{"data":{"w%d":"%d"}}`, w, i)))
						if err != nil {
							b.Error(err)
							return
						}
						r.Header.Set("Content-Type", "application/merge-patch+json")
						res, err := s.Client().Do(r)
						if err != nil {
							b.Error(err)
							return
						}
						_ = res.Body.Close()
						if res.StatusCode != 200 {
							refused.Add(1)
						}
					}
				})
			}
			all.Wait()
			done := float64(b.N) - float64(refused.Load())
			b.ReportMetric(done/b.Elapsed().Seconds(), "ok/s")
			b.ReportMetric(float64(refused.Load())/float64(b.N), "refused/op")
			b.ReportMetric(done/float64(max(1, store.Stats().Fsyncs-before.Fsyncs)), "ok/fsync")
		})
	}
}
