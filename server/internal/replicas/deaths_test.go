package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// dying is the shared store of a server that dies after some commits: later commits fail. Commits of
// Leases do not count.
type dying struct {
	storage.Backend

	mu   sync.Mutex
	left int // commits until then; negative: it does not die
	died bool
}

func (*dying) Shared() bool { return true }
func (*dying) Close() error { return nil }

var errDead = errors.New("the server is dead")

// dieAfter lets the server die after the given number of further commits.
func (d *dying) dieAfter(commits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = commits
}

// dead reports whether the server has died.
func (d *dying) dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.died
}

func (d *dying) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	lease := slices.ContainsFunc(ws, func(w storage.Write) bool { return strings.HasPrefix(w.Key, "leases.") })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.died = d.died || d.left == 0 && !lease
	if d.died {
		return 0, errDead
	}
	rev, err := d.Backend.Commit(ctx, ws...)
	if err == nil && d.left > 0 && !lease {
		d.left--
	}
	return rev, err
}

func (d *dying) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	if d.dead() {
		return storage.Record{}, errDead
	}
	return d.Backend.Get(ctx, key, at)
}

func (d *dying) Revision(ctx context.Context) (storage.Revision, error) {
	if d.dead() {
		return 0, errDead
	}
	return d.Backend.Revision(ctx)
}

// death is an operation in which a server may die between its commits.
type death struct {
	prepare func(a *apitest.Client)
	work    func(t *testing.T, a *apitest.Client)
	check   func(t *testing.T, next *servertest.Server, store storage.Backend)
	also    func(b *server.Builder)
	least   int // commits that it takes
}

// atEachPoint repeats an operation and lets the server die after each possible number of commits.
// Another server, which has shared the store all the time, then repairs the state.
func (d death) atEachPoint(t *testing.T) {
	also := d.also
	if also == nil {
		also = func(*server.Builder) {}
	}
	base := memstore.New(memstore.Options{})
	defer base.Close()
	first := servertest.New(t, apitest.WithStorage(&dying{Backend: base, left: -1}), also)
	if d.prepare != nil {
		d.prepare(apitest.InProcess(t, first))
	}
	first.Settle()
	require.NoError(t, first.Shutdown(t.Context()))
	for n := 0; ; n++ {
		store := base.Fork()
		mortal := &dying{Backend: store, left: -1}
		leader := servertest.New(t, apitest.WithStorage(mortal), also)
		leader.Settle()
		next := servertest.New(t, apitest.WithStorage(&dying{Backend: store, left: -1}), also)
		next.Settle()
		mortal.dieAfter(n)
		d.work(t, apitest.InProcess(t, leader))
		synctest.Wait()
		if !mortal.dead() {
			require.GreaterOrEqual(t, n, d.least, "the operation has fewer commits than were to be cut")
			return
		}
		time.Sleep(time.Minute) // the Leases run out
		next.Settle()
		d.check(t, next, store)
		require.False(t, t.Failed(), "after %d commits", n)
		require.NoError(t, leader.Shutdown(t.Context()))
		require.NoError(t, next.Shutdown(t.Context()))
	}
}

// TestOtherServerCompletesInterruptedOperation: if a server dies between any two commits of an
// operation, another server completes the operation.
func TestOtherServerCompletesInterruptedOperation(t *testing.T) {
	t.Parallel()
	pod := `{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`
	for name, d := range map[string]death{
		"names of a definition": {
			least: 2,
			work: func(_ *testing.T, a *apitest.Client) {
				a.Do("POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
			},
			check: func(t *testing.T, next *servertest.Server, _ storage.Backend) {
				if got := apitest.InProcess(t, next).Do("GET", apitest.WidgetDefinitionPath, nil); got.Code == 200 {
					apitest.InProcess(t, next).Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`))
				}
			},
		},
		"deletion of a definition": {
			least: 4,
			prepare: func(a *apitest.Client) {
				a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
				require.Eventually(a.T, func() bool { return a.Do("POST", apitest.WidgetsPath, apitest.NewWidget("w1", `{}`)).Code == 201 }, apitest.Timeout, time.Second)
				a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w2", `{}`))
			},
			work: func(_ *testing.T, a *apitest.Client) { a.Do("DELETE", apitest.WidgetDefinitionPath, nil) },
			check: func(t *testing.T, next *servertest.Server, store storage.Backend) {
				if apitest.InProcess(t, next).Do("GET", apitest.WidgetDefinitionPath, nil).Code == 404 {
					assert.Empty(t, keysOf(t, store, "widgets.example.com/"))
				}
			},
		},
		"graceful deletion": {
			least:   2,
			prepare: func(a *apitest.Client) { a.Must(201, "POST", apitest.PodsPath, pod) },
			work:    func(_ *testing.T, a *apitest.Client) { a.Do("DELETE", apitest.PodsPath+"/p?gracePeriodSeconds=0", nil) },
			check: func(t *testing.T, next *servertest.Server, _ storage.Backend) {
				if got := apitest.InProcess(t, next).Do("GET", apitest.PodsPath+"/p", nil); got.Code == 200 {
					assert.Nil(t, apitest.Nested(got.Body, "metadata", "deletionTimestamp"), "its end was seen, and it stays")
				}
			},
		},
		"deletion of a namespace": {
			least: 4,
			prepare: func(a *apitest.Client) {
				a.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"n"}}`)
				a.Must(201, "POST", apitest.NamespacesPath+"/n/configmaps", apitest.NewConfigMap("a"))
				a.Must(201, "POST", apitest.NamespacesPath+"/n/services", apitest.NewService("s", ""))
			},
			work: func(_ *testing.T, a *apitest.Client) { a.Do("DELETE", apitest.NamespacesPath+"/n", nil) },
			check: func(t *testing.T, next *servertest.Server, store storage.Backend) {
				if apitest.InProcess(t, next).Do("GET", apitest.NamespacesPath+"/n", nil).Code == 404 {
					assert.Empty(t, inNamespace(t, store, "n"))
				} else {
					assert.Contains(t, string(apitest.InProcess(t, next).Must(200, "GET", apitest.NamespacesPath+"/n", nil).Raw), `"phase":"Active"`)
				}
			},
		},
		"giving back much": {
			least: 2,
			prepare: func(a *apitest.Client) {
				a.Must(201, "POST", apitest.ServicesPath, manyPorts(100))
				a.Must(200, "PATCH", apitest.ServicesPath+"/s", manyPorts(140))
			},
			work: func(_ *testing.T, a *apitest.Client) { a.Do("DELETE", apitest.ServicesPath+"/s", nil) },
			check: func(t *testing.T, next *servertest.Server, store storage.Backend) {
				if apitest.InProcess(t, next).Do("GET", apitest.ServicesPath+"/s", nil).Code == 200 {
					assert.Len(t, reserved(t, store), 141)
					return
				}
				apitest.InProcess(t, next).Must(201, "POST", apitest.ServicesPath, manyPorts(100))
				time.Sleep(2 * time.Hour)
				next.Settle()
				assert.Len(t, reserved(t, store), 101)
			},
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, d.atEachPoint) })
	}
}

// manyPorts is a service with node ports.
func manyPorts(n int) string {
	var ports []string
	for i := range n {
		ports = append(ports, fmt.Sprintf(`{"name":"p%d","port":%d,"nodePort":%d}`, i, i+1, 30000+i))
	}
	return fmt.Sprintf(`{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[%s]}}`, strings.Join(ports, ","))
}

// keysOf returns the keys of a store that begin with a prefix.
func keysOf(t *testing.T, store storage.Backend, prefix string) (keys []string) {
	t.Helper()
	_, records, err := store.Scan(t.Context(), prefix, "", 0)
	require.NoError(t, err)
	for rec, err := range records {
		require.NoError(t, err)
		keys = append(keys, rec.Key)
	}
	return keys
}

// TestNextServerCompletesInterruptedStart: if a server dies after any number of commits of its
// start, the next server makes the remaining commits.
func TestNextServerCompletesInterruptedStart(t *testing.T) {
	t.Parallel()
	whole := func(store storage.Backend) []string {
		s := servertest.New(t, apitest.WithStorage(&dying{Backend: store, left: -1}))
		s.Settle()
		require.NoError(t, s.Shutdown(t.Context()))
		return slices.DeleteFunc(keysOf(t, store, ""), func(key string) bool {
			return strings.HasPrefix(key, "leases.") || strings.HasPrefix(key, resource.TermPrefix)
		})
	}
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	want := whole(store)
	for n := 0; ; n++ {
		store := memstore.New(memstore.Options{})
		mortal := &dying{Backend: store, left: n}
		b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, Storage: mortal}
		b.Register(builtin.Kinds()...)
		s, err := b.Build(t.Context())
		if err == nil {
			require.NoError(t, s.Shutdown(t.Context()))
			require.Greater(t, n, 10)
			return
		}
		require.True(t, mortal.dead(), "%v", err)
		require.Equal(t, want, whole(store), "after %d commits", n)
		require.NoError(t, store.Close())
	}
}

// TestWritesCrossedByTheirDefinition: if one server stores an object while another server changes
// its definition, the object is stored by the new definition or not at all, in a single commit, so
// that a server which dies leaves nothing to clean up.
func TestWritesCrossedByTheirDefinition(t *testing.T) {
	t.Parallel()
	const stored = "widgets.example.com/default/w"
	twoVersions := func(storage string) string {
		version := func(name string) string {
			return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`, name, name == storage)
		}
		return `[` + version("v1") + `,` + version("v2") + `]`
	}
	storing := func(version string) func(*testing.T, *servertest.Server) {
		return func(t *testing.T, other *servertest.Server) {
			apitest.InProcess(t, other).Must(200, "PATCH", apitest.WidgetDefinitionPath, `{"spec":{"versions":`+twoVersions(version)+`}}`)
			other.Settle()
		}
	}
	migrated := func(version string) func(*testing.T, *servertest.Server) {
		return func(t *testing.T, other *servertest.Server) {
			storing(version)(t, other)
			require.NoError(t, other.Migrate(t.Context(), nil))
			got := apitest.InProcess(t, other).Must(200, "GET", apitest.WidgetDefinitionPath, nil)
			require.Equal(t, []any{version}, apitest.Nested(got.Body, "status", "storedVersions"))
		}
	}
	deleted := func(t *testing.T, other *servertest.Server) {
		a := apitest.InProcess(t, other)
		a.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
		require.Eventually(t, func() bool { return a.Do("GET", apitest.WidgetDefinitionPath, nil).Code == 404 }, apitest.Timeout, time.Millisecond)
	}
	for name, c := range map[string]struct {
		update         bool
		before, change func(*testing.T, *servertest.Server)
		code           int
		stored         string
	}{
		"create, migrated":      {false, storing("v1"), migrated("v2"), 201, "v2"},
		"update, migrated":      {true, storing("v1"), migrated("v2"), 200, "v2"},
		"update, migrated back": {true, storing("v2"), migrated("v1"), 200, "v1"}, // which need not store the object anew
		"create, deleted":       {false, storing("v1"), deleted, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Options{})
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			mortal := &dying{Backend: store, left: -1}
			held := apitest.NewBlockingStore(mortal, stored)
			other := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
			apitest.InProcess(t, other).Must(201, "POST", apitest.DefinitionsPath, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
				"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":`+twoVersions("v1")+`}}`)
			other.Settle()
			method, path := "POST", apitest.WidgetsPath
			if c.update {
				apitest.InProcess(t, other).Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`))
				method, path = "PATCH", apitest.WidgetsPath+"/w"
			}
			c.before(t, other)
			one := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(held), func(b *server.Builder) { b.RunControllers = []string{"flowcontrol"} }))
			var got apitest.Response
			var writer sync.WaitGroup
			writer.Go(func() { got = one.Do(method, path, apitest.NewWidget("w", `{"new":true}`)) })
			<-held.Arrived
			c.change(t, other)
			mortal.dieAfter(1)
			close(held.Release)
			writer.Wait()
			assert.Equal(t, c.code, got.Code, "%s", got.Raw)
			if c.code == 403 {
				assert.Empty(t, keysOf(t, store, "widgets.example.com/"))
				return
			}
			rec := apitest.StoredObject(t, store, stored)
			assert.Equal(t, "example.com/"+c.stored, rec["apiVersion"])
			assert.Equal(t, map[string]any{"new": true}, rec["spec"])
			assert.Equal(t, "example.com/v1", got.Body["apiVersion"])
			assert.Equal(t, "example.com/v1", apitest.InProcess(t, other).Must(200, "GET", apitest.WidgetsPath+"/w", nil).Body["apiVersion"])
		})
	}
}
