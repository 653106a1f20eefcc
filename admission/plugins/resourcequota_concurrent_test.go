package plugins_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

var (
	configMaps     = meta.GroupResource{Resource: "configmaps"}
	resourceQuotas = meta.GroupResource{Resource: "resourcequotas"}
)

func configMap(name string) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}})
}

// bound creates a quota for config maps.
func bound(t testing.TB, c client.Client, name string, hard int) {
	_, err := c.Create(t.Context(), resourceQuotas, meta.NewObject(map[string]any{
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec":     map[string]any{"hard": map[string]any{"count/configmaps": fmt.Sprint(hard)}},
	}))
	require.NoError(t, err)
}

// used returns the number of config maps in the status of a quota.
func used(t testing.TB, c client.Client, name string) string {
	q, err := c.Get(t.Context(), resourceQuotas, meta.Key{Namespace: "default", Name: name})
	require.NoError(t, err)
	return q.String("status", "used", "count/configmaps")
}

func exceeded(err error) bool { return err != nil && strings.Contains(err.Error(), "exceeded quota: ") }

// TestResourceQuotaWithConcurrentCreates checks that exactly as many concurrent creates succeed as the
// smallest quota allows, and that every quota counts these.
func TestResourceQuotaWithConcurrentCreates(t *testing.T) {
	const hard, writers = 20, 64
	s := servertest.New(t)
	c := s.Objects()
	bound(t, c, "a", hard+5)
	bound(t, c, "b", hard)
	bound(t, c, "c", hard+9)
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if _, err := c.Create(t.Context(), configMaps, configMap(fmt.Sprint(i))); err == nil {
				made.Add(1)
			} else if !exceeded(err) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, hard, made.Load())
	for _, name := range []string{"a", "b", "c"} {
		assert.Equal(t, fmt.Sprint(hard), used(t, c, name))
	}
	s.Settle()
	assert.Equal(t, fmt.Sprint(hard), used(t, c, "b"))
}

// TestResourceQuotaWithConcurrentWrites checks that concurrent creates, deletes and failed creates never
// exceed the quota, and that the status is exact in the end.
func TestResourceQuotaWithConcurrentWrites(t *testing.T) {
	const hard, writers, rounds = 10, 16, 30
	s := servertest.New(t)
	c := s.Objects()
	bound(t, c, "q", hard)
	var there atomic.Int64 // lower bound of the number of objects
	var all sync.WaitGroup
	for i := range writers {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for n := range rounds {
				name := fmt.Sprintf("%d-%d", i, n)
				_, err := c.Create(t.Context(), configMaps, configMap(name))
				if err != nil {
					if !exceeded(err) {
						t.Error(err)
					}
					continue
				}
				if now := there.Add(1); now > hard {
					t.Errorf("%d objects exist, quota is %d", now, hard)
				}
				switch random.IntN(3) {
				case 0: // fails: the name exists
					_, err = c.Create(t.Context(), configMaps, configMap(name))
					assert.True(t, exceeded(err) || meta.IsAlreadyExists(err), err)
				case 1:
					res, err := s.Client().Post(s.Host()+"/api/v1/namespaces/default/configmaps?dryRun=All", "application/json", strings.NewReader(`{"metadata":{"name":"dry"}}`))
					if assert.NoError(t, err) {
						assert.NoError(t, res.Body.Close())
						assert.Contains(t, []int{201, 403}, res.StatusCode)
					}
				}
				there.Add(-1)
				assert.NoError(t, c.Delete(t.Context(), configMaps, meta.Key{Namespace: "default", Name: name}, registry.DeleteOptions{}))
			}
		})
	}
	all.Wait()
	s.Settle()
	assert.Equal(t, "0", used(t, c, "q"))
	for i := range hard {
		_, err := c.Create(t.Context(), configMaps, configMap(fmt.Sprint("last-", i)))
		require.NoError(t, err)
	}
	_, err := c.Create(t.Context(), configMaps, configMap("more"))
	assert.True(t, exceeded(err), err)
}

// shared is a store that stays open when a server over it closes.
type shared struct{ storage.Backend }

func (shared) Close() error { return nil }

// TestResourceQuotaAcrossServers checks that concurrent writes by several servers over one store never exceed
// the quota.
func TestResourceQuotaAcrossServers(t *testing.T) {
	synctest.Test(t, quotaOfServers) // charges of writes in flight at other servers count for some seconds
}

func quotaOfServers(t *testing.T) {
	const hard, writers, rounds = 10, 64, 10
	store := shared{memstore.New(memstore.Options{})}
	var clients []client.Client
	var servers []*servertest.Server
	for range 3 {
		s := servertest.New(t, func(b *server.Builder) { b.Storage = store })
		servers, clients = append(servers, s), append(clients, s.Objects())
	}
	bound(t, clients[0], "q", hard)
	var there atomic.Int64 // lower bound of the number of objects
	var all sync.WaitGroup
	for i := range writers {
		c := clients[i%3]
		all.Go(func() {
			for n := range rounds {
				name := fmt.Sprintf("%d-%d", i, n)
				if _, err := c.Create(t.Context(), configMaps, configMap(name)); err != nil {
					if !exceeded(err) {
						t.Error(err)
					}
					continue
				}
				if now := there.Add(1); now > hard {
					t.Errorf("%d objects exist, quota is %d", now, hard)
				}
				runtime.Gosched()
				there.Add(-1)
				assert.NoError(t, c.Delete(t.Context(), configMaps, meta.Key{Namespace: "default", Name: name}, registry.DeleteOptions{}))
			}
		})
	}
	all.Wait()
	for _, s := range servers {
		s.Settle()
	}
	assert.Equal(t, "0", used(t, clients[0], "q"))
	var made atomic.Int64
	for i := range 64 {
		all.Go(func() {
			if _, err := clients[i%3].Create(t.Context(), configMaps, configMap(fmt.Sprint("last-", i))); err == nil {
				made.Add(1)
			} else if !exceeded(err) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, hard, made.Load())
	for _, s := range servers {
		s.Settle()
	}
	assert.Equal(t, fmt.Sprint(hard), used(t, clients[0], "q"))
}

// TestResourceQuotaAfterServerDies checks that the charges of a server that dies before it commits the write
// are released soon if another server needs the room, else by a later recount, and that the quota is never
// exceeded.
func TestResourceQuotaAfterServerDies(t *testing.T) {
	for _, asks := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const hard = 10
			inner := memstore.New(memstore.Options{})
			var dead atomic.Bool
			mortal := faultinject.Wrap(shared{inner}, func(c faultinject.Call) faultinject.Fault {
				if c.Op == faultinject.OpCommit && strings.HasPrefix(c.Key, "configmaps/") {
					dead.Store(true) // after the charge, before the write
				}
				if dead.Load() && c.Op != faultinject.OpEvent {
					return faultinject.Fault{Err: errors.New("the server is dead")}
				}
				return faultinject.Fault{}
			})
			one := servertest.New(t, func(b *server.Builder) { b.Storage = shared{inner} })
			c := one.Objects()
			bound(t, c, "q", hard)
			one.Settle()
			two := servertest.New(t, func(b *server.Builder) { b.Storage, b.RunControllers = mortal, []string{"resourcequota"} })
			var all sync.WaitGroup
			for i := range hard {
				all.Go(func() { _, _ = two.Objects().Create(t.Context(), configMaps, configMap(fmt.Sprint("lost-", i))) })
			}
			all.Wait()
			require.True(t, dead.Load())
			require.NotEqual(t, "0", used(t, c, "q"), "usage is reserved")
			if !asks {
				time.Sleep(11 * time.Minute)
				assert.Equal(t, "0", used(t, c, "q"))
				return
			}
			time.Sleep(11 * time.Second)
			var made atomic.Int64
			for i := range 3 * hard {
				all.Go(func() {
					if _, err := c.Create(t.Context(), configMaps, configMap(fmt.Sprint(i))); err == nil {
						made.Add(1)
					} else if !exceeded(err) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			assert.EqualValues(t, hard, made.Load())
			assert.Equal(t, fmt.Sprint(hard), used(t, c, "q"))
		})
	}
}

// TestResourceQuotaOnFaultyStore checks that commits that fail, or whose result is wrong or unknown, never
// exceed the quota, and that the status is exact in the end.
func TestResourceQuotaOnFaultyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hard = 40
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		s := servertest.New(t, func(b *server.Builder) { b.Storage = store })
		c := s.Objects()
		bound(t, c, "q", hard)
		s.Settle()
		store.SetPlan(func(call faultinject.Call) faultinject.Fault {
			if call.Op == faultinject.OpCommit && call.N%3 == 0 {
				return faultinject.Fault{Err: errors.New("connection lost"), Done: call.N%2 == 0}
			}
			return faultinject.Fault{}
		})
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for n := range 10 {
					_, _ = c.Create(t.Context(), configMaps, configMap(fmt.Sprintf("%d-%d", i, n)))
				}
			})
		}
		all.Wait()
		store.SetPlan(nil)
		s.Settle()
		list, err := c.List(t.Context(), configMaps, "default")
		require.NoError(t, err)
		assert.LessOrEqual(t, len(list), hard)
		assert.NotEmpty(t, list)
		assert.Equal(t, fmt.Sprint(len(list)), used(t, c, "q"))
	})
}
