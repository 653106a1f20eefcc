package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func TestBuildReportsAllErrors(t *testing.T) {
	b := &server.Builder{}
	type bad struct {
		Count chan int `json:"count"`
	}
	b.Register(registry.Of(registry.Definition[bad]{Group: "a.example", Version: "v1", Kind: "First"}),
		registry.Of(registry.Definition[bad]{Group: "b.example", Version: "not a version", Kind: "Second"}))
	b.Register(builtin.Kinds()...)
	b.Register(builtin.Kinds()...)
	_, err := b.Build(t.Context())
	require.Error(t, err)
	for _, part := range []string{"Authorizer", "First", "Second", "ConfigMap", "twice"} {
		assert.ErrorContains(t, err, part)
	}
}

func TestBuildFailsForOtherNamesProfile(t *testing.T) {
	dir := t.TempDir()
	t.Run("first", func(t *testing.T) { servertest.New(t, apitest.WithStorage(apitest.OpenBadger(t, dir))) })
	store := apitest.OpenBadger(t, dir)
	_, err := (&server.Builder{Names: names.Orch, Authorizer: auth.AllowAll, Storage: store}).Build(t.Context())
	assert.ErrorContains(t, err, "names")
}

// TestFailedBuildClosesStoreAndPlugins makes Build fail at each step: the store is closed, and each
// plugin that was set up is closed once.
func TestFailedBuildClosesStoreAndPlugins(t *testing.T) {
	broken := errors.New("broken")
	fails := func(at faultinject.Op) func(*server.Builder) {
		return func(b *server.Builder) {
			b.Storage = faultinject.Wrap(b.Storage, func(c faultinject.Call) (f faultinject.Fault) {
				if c.Op == at {
					f.Err = broken
				}
				return f
			})
		}
	}
	for name, change := range map[string]func(*server.Builder){
		"no authorizer": func(b *server.Builder) { b.Authorizer = nil },
		"a nil kind":    func(b *server.Builder) { b.Register(nil) },
		"flow control":  func(b *server.Builder) { b.Serving.FlowControl = &flowcontrol.Config{} },
		"audit metrics": func(b *server.Builder) { b.Audit = badCollector{} },
		"the stamp":     fails(faultinject.OpStamp),
		"other names":   func(b *server.Builder) { b.Names = names.Orch },
		"the revision":  fails(faultinject.OpRevision),
		"a part of its data": func(b *server.Builder) {
			_, err := b.Storage.Commit(t.Context(), storage.Write{Key: storage.IncompleteKey, Value: []byte("x")})
			require.NoError(t, err)
		},
		"the first read":  fails(faultinject.OpScan),
		"the first write": fails(faultinject.OpCommit),
		"a hook": func(b *server.Builder) {
			b.OnStart = append(b.OnStart, func(context.Context, client.Client) error { return broken })
		},
	} {
		store := memstore.New(memstore.Options{})
		_, err := store.Stamp(t.Context(), "names", names.Kubernetes.String())
		require.NoError(t, err)
		b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, Storage: store}
		b.Register(builtin.Kinds()...)
		opened, closed := 0, 0
		b.Admission = []admission.Plugin{{Name: "Mine", Validate: func(context.Context, *admission.Request) error { return nil }, Setup: func(p *admission.Plugin, _ admission.PluginContext) error {
			opened++
			p.Close = func() { closed++ }
			return nil
		}}}
		change(b)
		_, err = b.Build(t.Context())
		require.Error(t, err, name)
		assert.Equal(t, opened, closed, name)
		_, err = store.Revision(t.Context())
		assert.ErrorIs(t, err, storage.ErrClosed, name)
	}
}

// badCollector is an auditor whose metrics cannot be registered.
type badCollector struct{ auth.Auditor }

func (badCollector) Describe(to chan<- *prometheus.Desc) {
	to <- prometheus.NewInvalidDesc(errors.New("no description"))
}
func (badCollector) Collect(chan<- prometheus.Metric) {}

// TestShutdownFinishesRequestsInFlight checks that Shutdown ends watches cleanly, lets requests in flight finish and
// refuses new ones.
func TestShutdownFinishesRequestsInFlight(t *testing.T) {
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	s := servertest.New(t, apitest.WithStorage(store))
	a := apitest.InProcess(t, s)
	w := a.Watch(apitest.ConfigMapsPath + "?watch=1&resourceVersion=1")
	hold, held := make(chan struct{}), make(chan struct{})
	store.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit {
			close(held)
			return faultinject.Fault{Wait: hold}
		}
		return faultinject.Fault{}
	})
	created := make(chan apitest.Response, 1)
	go func() { created <- a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("late")) }()
	<-held
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	for _, e := range w.ReadAll() {
		assert.NotEqual(t, "ERROR", e.Type)
	}
	a.Must(503, "GET", apitest.ConfigMapsPath, nil)
	close(hold)
	assert.Equal(t, 201, (<-created).Code)
	assert.NoError(t, <-down)
	assert.NoError(t, s.Shutdown(context.Background()))
	a.Must(503, "GET", apitest.ConfigMapsPath, nil)
}

// TestEndWatches checks that a watch with bookmarks ends with a bookmark, from which the next watch
// continues, and that other watches end without an event.
func TestEndWatches(t *testing.T) {
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	version := a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("one")).ResourceVersion()
	bare, marked := a.Watch(apitest.ConfigMapsPath+"?watch=1&resourceVersion="+version), a.Watch(apitest.ConfigMapsPath+"?watch=1&allowWatchBookmarks=1&resourceVersion="+version)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("two"))
	newest := a.Must(201, "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"other"}}`).ResourceVersion()
	assert.Equal(t, "two", bare.Next().Name())
	assert.Equal(t, "two", marked.Next().Name())
	s.EndWatches()
	assert.Empty(t, bare.ReadAll())
	end := marked.ReadAll()
	require.Len(t, end, 1)
	assert.Equal(t, []string{"BOOKMARK", newest}, []string{end[0].Type, end[0].ResourceVersion()})

	a.Must(200, "GET", apitest.ConfigMapsPath, nil)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("three"))
	end = a.Watch(apitest.ConfigMapsPath + "?watch=1&allowWatchBookmarks=1&resourceVersion=" + newest).ReadAll()
	require.NotEmpty(t, end)
	assert.Equal(t, "BOOKMARK", end[len(end)-1].Type)

	require.NoError(t, s.Shutdown(t.Context()))
	got := a.Must(503, "GET", apitest.ConfigMapsPath, nil)
	assert.Equal(t, []string{"1", "close"}, []string{got.Header.Get("Retry-After"), got.Header.Get("Connection")})
}

// TestShutdownReturnsAtContextDeadline shuts a server down while a request hangs.
func TestShutdownReturnsAtContextDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		b := &server.Builder{Authorizer: auth.AllowAll, Handlers: map[string]http.Handler{
			"/hang": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold })}}
		s, err := b.Build(t.Context())
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/hang", nil))
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
		close(hold)
		<-done
	})
}

// TestSlowPeersAreDisconnected checks that clients which send or read too slowly are disconnected,
// and that Shutdown does not wait for them.
func TestSlowPeersAreDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t)
		a := apitest.InProcess(t, s)
		never, w := io.Pipe()
		defer w.Close()
		begun := time.Now()
		got := a.Do("POST", apitest.ConfigMapsPath, io.Reader(never))
		assert.Contains(t, []int{400, 408}, got.Code, "%s", got.Raw)
		assert.Equal(t, time.Minute, time.Since(begun))
		big := strings.Repeat("x", 500_000)
		for i := range 8 {
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i), "v", big))
		}
		list := a.Open(t.Context(), "GET", apitest.ConfigMapsPath, nil)
		watch := a.Open(t.Context(), "GET", apitest.ConfigMapsPath+"?watch=1", nil)
		time.Sleep(2 * time.Minute)
		for _, res := range []*http.Response{list, watch} {
			_, err := io.ReadAll(res.Body)
			assert.Error(t, err)
			require.NoError(t, res.Body.Close())
		}
		slow := a.Open(t.Context(), "GET", apitest.ConfigMapsPath+"?watch=1", nil)
		synctest.Wait()
		begun = time.Now()
		require.NoError(t, s.Shutdown(t.Context()))
		assert.LessOrEqual(t, time.Since(begun), time.Second)
		require.NoError(t, slow.Body.Close())
	})
}

func TestManyServers(t *testing.T) {
	many := 200
	if testing.Short() {
		many = 40
	}
	for range many {
		s := servertest.New(t)
		apitest.InProcess(t, s).Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
	}
}

// TestServerBelowPrefix serves the API below a path prefix, over HTTP/1.1 and HTTP/2 with TLS.
func TestServerBelowPrefix(t *testing.T) {
	s := servertest.New(t)
	mux := http.NewServeMux()
	mux.Handle("/below/", http.StripPrefix("/below", s.Server))
	for _, two := range []bool{false, true} {
		web := httptest.NewUnstartedServer(mux)
		web.EnableHTTP2 = two
		web.StartTLS()
		a := apitest.NewClient(t, web.URL+"/below", web.Client())
		res := a.Open(t.Context(), "GET", "/version", nil)
		assert.Equal(t, map[bool]int{false: 1, true: 2}[two], res.ProtoMajor)
		require.NoError(t, res.Body.Close())
		w := a.Watch(apitest.ConfigMapsPath + "?watch=1&resourceVersion=1")
		name := fmt.Sprint("a", two)
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(name))
		a.Must(409, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(name))
		e := w.Next()
		for e.Name() != name {
			e = w.Next()
		}
		assert.Equal(t, "ADDED", e.Type)
		w.Close()
		web.Client().CloseIdleConnections()
		web.Close()
	}
}

// TestObjectsClient tests the client that Server.Objects returns.
func TestObjectsClient(t *testing.T) {
	ctx := t.Context()
	s := servertest.New(t)
	c := s.Objects()
	maps := meta.GroupResource{Resource: "configmaps"}
	key := meta.Key{Namespace: "default", Name: "a"}
	feed := c.Feed(maps)
	defer feed.Close()
	obj := &meta.Object{}
	obj.SetName("a")
	obj.SetNamespace("default")
	_, err := c.Create(ctx, maps, obj)
	require.NoError(t, err)
	_, err = c.Create(ctx, maps, obj)
	assert.True(t, meta.IsAlreadyExists(err))
	made, err := c.Update(ctx, maps, key, "", func(o *meta.Object) error { o.Set("1", "data", "v"); return nil })
	require.NoError(t, err)
	same, err := c.Update(ctx, maps, key, "", func(*meta.Object) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, made.ResourceVersion(), same.ResourceVersion())
	_, err = c.Update(ctx, maps, key, "", func(*meta.Object) error { return io.ErrNoProgress })
	assert.ErrorIs(t, err, io.ErrNoProgress)
	_, err = c.Update(ctx, maps, key, "none", func(*meta.Object) error { return nil })
	assert.True(t, meta.IsNotFound(err))
	assert.True(t, meta.IsConflict(c.Delete(ctx, maps, key, registry.DeleteOptions{UID: "other"})))
	assert.True(t, meta.IsConflict(c.Delete(ctx, maps, key, registry.DeleteOptions{Version: "1"})))
	require.NoError(t, c.Delete(ctx, maps, key, registry.DeleteOptions{UID: made.UID()}))
	assert.True(t, meta.IsNotFound(c.Delete(ctx, maps, key, registry.DeleteOptions{})))
	_, err = c.Get(ctx, meta.GroupResource{Resource: "nothings"}, key)
	assert.True(t, meta.IsNotFound(err))
	changes, reset := feed.Changes()
	assert.False(t, reset)
	assert.Empty(t, slices.Collect(changes), "an object that was created and deleted before the first Changes causes no event")
	_, err = c.Create(ctx, maps, obj)
	require.NoError(t, err)
	changes, _ = feed.Changes()
	created := slices.Collect(changes)
	require.Len(t, created, 1)
	assert.Nil(t, created[0].Old)
	early := (&server.Builder{}).Client()
	_, err = early.Get(ctx, maps, key)
	assert.Error(t, err)
}

// TestObjectsClientHidesStoreErrors checks that errors of the store are Statuses without the
// store's message.
func TestObjectsClientHidesStoreErrors(t *testing.T) {
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	c := servertest.New(t, apitest.WithStorage(store)).Objects()
	store.SetPlan(func(call faultinject.Call) faultinject.Fault {
		if call.Op == faultinject.OpCommit {
			return faultinject.Fault{Err: io.ErrClosedPipe}
		}
		return faultinject.Fault{}
	})
	defer store.SetPlan(nil)
	namespaces := meta.GroupResource{Resource: "namespaces"}
	key := meta.Key{Name: "default"}
	obj := &meta.Object{}
	obj.SetName("n")
	_, err := c.Create(t.Context(), namespaces, obj)
	assert.Equal(t, meta.ReasonInternalError, meta.ReasonOf(err))
	assert.NotContains(t, err.Error(), "pipe")
	_, err = c.Update(t.Context(), namespaces, key, "", func(o *meta.Object) error { o.Set("x", "metadata", "labels", "a"); return nil })
	assert.Equal(t, meta.ReasonInternalError, meta.ReasonOf(err))
	err = c.Delete(t.Context(), meta.GroupResource{Resource: "configmaps"}, meta.Key{Namespace: "default", Name: "none"}, registry.DeleteOptions{})
	assert.True(t, meta.IsNotFound(err))
}
