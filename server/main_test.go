package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

func TestMain(m *testing.M) {
	if told := os.Getenv(attackVariable); told != "" {
		attackAsTold(told)
		return
	}
	if store := os.Getenv(startVariable); store != "" {
		startAsTold(store)
		return
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come; it only ends tests that
// would fail anyway.
const patience = time.Minute

// onStores runs a test over each store.
func onStores(t *testing.T, test func(t *testing.T, store storage.Backend)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, memstore.New(memstore.Options{}))
	})
	t.Run("badger", func(t *testing.T) {
		t.Parallel()
		test(t, openBadger(t, t.TempDir()))
	})
}

func openBadger(t testing.TB, dir string) *badgerstore.Store {
	store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.NoError(t, err)
	return store
}

// over configures a server over a store.
func over(store storage.Backend) func(*server.Builder) {
	return func(b *server.Builder) { b.Storage = store }
}

// api calls a server as any client would.
type api struct {
	t      testing.TB
	base   string
	client *http.Client
}

func inProcess(t testing.TB, s *servertest.Server) *api { return &api{t, s.Host(), s.Client()} }

// answer is what a server said.
type answer struct {
	code   int
	header http.Header
	raw    []byte
	body   map[string]any // nil if the body is no JSON object
}

// do sends one request. A body that is no string, bytes or reader goes as JSON;
// headers are names and values in turns.
func (a *api) do(method, path string, body any, headers ...string) answer {
	a.t.Helper()
	res := a.open(context.Background(), method, path, body, headers...)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(a.t, err, "%s %s", method, path)
	out := answer{code: res.StatusCode, header: res.Header, raw: raw}
	_ = json.Unmarshal(raw, &out.body)
	return out
}

// open sends one request and leaves the body to be read.
func (a *api) open(ctx context.Context, method, path string, body any, headers ...string) *http.Response {
	a.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, reader(a.t, body))
	require.NoError(a.t, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := a.client.Do(r)
	require.NoError(a.t, err, "%s %s", method, path)
	return res
}

func reader(t testing.TB, body any) io.Reader {
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(b)
	case []byte:
		return bytes.NewReader(b)
	case io.Reader:
		return b
	}
	data, err := json.Marshal(body)
	require.NoError(t, err)
	return bytes.NewReader(data)
}

// must sends one request that has to end with a code.
func (a *api) must(code int, method, path string, body any, headers ...string) answer {
	a.t.Helper()
	out := a.do(method, path, body, headers...)
	require.Equal(a.t, code, out.code, "%s %s: %s", method, path, out.raw)
	if code >= 400 {
		out.wantStatus(a.t)
	}
	return out
}

// wantStatus checks that a failure is a whole Status.
func (r answer) wantStatus(t testing.TB) {
	t.Helper()
	require.NotNil(t, r.body, "%d: %q", r.code, r.raw)
	assert.Equal(t, "Status", r.body["kind"])
	assert.Equal(t, "v1", r.body["apiVersion"])
	assert.Equal(t, "Failure", r.body["status"])
	assert.EqualValues(t, r.code, r.body["code"])
	assert.NotEmpty(t, r.body["reason"], "%s", r.raw)
	assert.NotEmpty(t, r.body["message"], "%s", r.raw)
}

// at reads a field by its path, nil if there is none.
func at(tree any, path ...string) any {
	for _, p := range path {
		m, _ := tree.(map[string]any)
		tree = m[p]
	}
	return tree
}

func text(tree any, path ...string) string {
	s, _ := at(tree, path...).(string)
	return s
}

func (r answer) version() string { return text(r.body, "metadata", "resourceVersion") }

// names of the items of a list.
func (r answer) names() []string {
	list := []string{}
	items, _ := r.body["items"].([]any)
	for _, it := range items {
		list = append(list, text(it, "metadata", "name"))
	}
	return list
}

// causes of a Status: "field reason".
func (r answer) causes() []string {
	list := []string{}
	all, _ := at(r.body, "details", "causes").([]any)
	for _, c := range all {
		list = append(list, strings.TrimSpace(text(c, "field")+" "+text(c, "reason")))
	}
	return list
}

const configMaps = "/api/v1/namespaces/default/configmaps"

// newConfigMap is a body.
func newConfigMap(name string, data ...string) map[string]any {
	values := map[string]any{}
	for i := 0; i < len(data); i += 2 {
		values[data[i]] = data[i+1]
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": values}
}

// watching is a watch that a test reads.
type watching struct {
	t      testing.TB
	body   io.ReadCloser
	decode *json.Decoder
}

type watched struct {
	Type   string
	Object map[string]any
}

func (w watched) name() string    { return text(w.Object, "metadata", "name") }
func (w watched) version() string { return text(w.Object, "metadata", "resourceVersion") }
func (w watched) String() string  { return w.Type + " " + w.name() }

// watch opens a watch; the test's end closes it.
func (a *api) watch(path string, headers ...string) *watching {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	a.t.Cleanup(cancel)
	res := a.open(ctx, "GET", path, nil, headers...)
	w := newWatching(a.t, res)
	if res.StatusCode != 200 {
		raw, _ := io.ReadAll(res.Body)
		require.Equal(a.t, 200, res.StatusCode, "%s: %s", path, raw)
	}
	return w
}

func newWatching(t testing.TB, res *http.Response) *watching {
	w := &watching{t, res.Body, json.NewDecoder(res.Body)}
	t.Cleanup(w.close)
	return w
}

func (w *watching) close() { _ = w.body.Close() }

func itoa(n int) string { return strconv.Itoa(n) }

// next returns the next event.
func (w *watching) next() watched {
	w.t.Helper()
	var e watched
	require.NoError(w.t, w.decode.Decode(&e))
	return e
}

// some returns the next n events as "TYPE name".
func (w *watching) some(n int) []string {
	w.t.Helper()
	list := make([]string, n)
	for i := range list {
		list[i] = w.next().String()
	}
	return list
}

// ended reads to the end of a watch, which has to be a clean one.
func (w *watching) ended() []watched {
	w.t.Helper()
	var list []watched
	for {
		var e watched
		err := w.decode.Decode(&e)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(w.t, err)
		list = append(list, e)
	}
}

// rawURL is a URL whose path and query are taken as they are, escapes undone as
// a listener would.
func rawURL(path string) *url.URL {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		u = &url.URL{Path: path}
	}
	u.Scheme, u.Host = "http", "in-process"
	return u
}
