package verbs_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestNoLostUpdate: many writers increment counters with the resourceVersion that they read, by every kind of write.
func TestNoLostUpdate(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), apitest.Patient))
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("n", "v", "0"))
		const writers, each = 6, 20
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for done := 0; done < each; {
					cur := a.Do("GET", apitest.ConfigMapsPath+"/n", nil)
					v, _ := strconv.Atoi(apitest.NestedString(cur.Body, "data", "v"))
					var got apitest.Response
					switch w % 3 {
					case 0:
						cur.Body["data"] = map[string]any{"v": strconv.Itoa(v + 1)}
						got = a.Do("PUT", apitest.ConfigMapsPath+"/n", cur.Body)
					case 1:
						got = a.Do("PATCH", apitest.ConfigMapsPath+"/n", fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"data":{"v":"%d"}}`, cur.ResourceVersion(), v+1))
					default:
						got = a.Do("PATCH", apitest.ConfigMapsPath+"/n", fmt.Sprintf(`[{"op":"test","path":"/data/v","value":"%d"},{"op":"replace","path":"/data/v","value":"%d"}]`, v, v+1),
							"Content-Type", "application/json-patch+json")
					}
					switch got.Code {
					case 200:
						done++
					case 409, 422:
					default:
						assert.Fail(t, "unexpected", "%d %s", got.Code, got.Raw)
						return
					}
				}
			})
		}
		all.Wait()
		assert.Equal(t, strconv.Itoa(writers*each), apitest.NestedString(a.Must(200, "GET", apitest.ConfigMapsPath+"/n", nil).Body, "data", "v"))
	})
}

// TestGeneratedNamesAreUnique: concurrent creates with generateName get different names.
func TestGeneratedNamesAreUnique(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), apitest.Patient))
		var all sync.WaitGroup
		var names sync.Map
		for range 8 {
			all.Go(func() {
				for range 40 {
					got := a.Do("POST", apitest.ConfigMapsPath, map[string]any{"metadata": map[string]any{"generateName": "g-"}})
					assert.Equal(t, 201, got.Code)
					_, taken := names.LoadOrStore(apitest.NestedString(got.Body, "metadata", "name"), true)
					assert.False(t, taken)
				}
			})
		}
		all.Wait()
		assert.Len(t, a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names(), 320)
	})
}

// TestRecreateConcurrently: of concurrent creates and deletes of a name, exactly one wins each time, and a watch sees
// all events in order.
func TestRecreateConcurrently(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), apitest.Patient))
		w := a.Watch(apitest.ConfigMapsPath + "?watch=1")
		var all sync.WaitGroup
		var created, deleted atomic.Int64
		for range 6 {
			all.Go(func() {
				for i := range 40 {
					if i%2 == 0 {
						got := a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("r"))
						assert.Contains(t, []int{201, 409}, got.Code)
						if got.Code == 201 {
							created.Add(1)
						}
						continue
					}
					got := a.Do("DELETE", apitest.ConfigMapsPath+"/r", nil)
					assert.Contains(t, []int{200, 404}, got.Code)
					if got.Code == 200 {
						deleted.Add(1)
					}
				}
			})
		}
		all.Wait()
		a.Do("DELETE", apitest.ConfigMapsPath+"/r", nil)
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("end"))
		there, version := false, 0
		var adds, dels int64
		for e := w.Next(); e.Name() != "end"; e = w.Next() {
			require.Greater(t, apitest.Revision(t, e.ResourceVersion()), version)
			version = apitest.Revision(t, e.ResourceVersion())
			switch e.Type {
			case "ADDED":
				require.False(t, there)
				there, adds = true, adds+1
			case "DELETED":
				require.True(t, there)
				there, dels = false, dels+1
			}
		}
		assert.Equal(t, created.Load(), adds)
		assert.GreaterOrEqual(t, dels, deleted.Load())
		assert.Equal(t, adds, dels)
	})
}

// TestFinalizersRemovedConcurrently: many writers remove a finalizer each, and the object is deleted once.
func TestFinalizersRemovedConcurrently(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), apitest.Patient))
		for round := range 5 {
			cm := apitest.NewConfigMap("f")
			var list []any
			for i := range 6 {
				list = append(list, fmt.Sprint("x.io/", i))
			}
			apitest.Nested(cm, "metadata").(map[string]any)["finalizers"] = list
			a.Must(201, "POST", apitest.ConfigMapsPath, cm)
			a.Must(200, "DELETE", apitest.ConfigMapsPath+"/f", nil)
			var all sync.WaitGroup
			for i := range 6 {
				all.Go(func() {
					got := a.Do("PATCH", apitest.ConfigMapsPath+"/f", fmt.Sprintf(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["x.io/%d"]}}`, i),
						"Content-Type", "application/strategic-merge-patch+json")
					assert.Equal(t, 200, got.Code, "%s", got.Raw)
				})
			}
			all.Wait()
			a.Must(404, "GET", apitest.ConfigMapsPath+"/f", nil)
			require.Empty(t, a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names(), "round %d", round)
		}
	})
}

// TestStoreWithFaults: with injected errors, commits that are made although they failed, and lost watches, every
// acknowledged write stays, and watchers see all of them.
func TestStoreWithFaults(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() storage.Backend{
		"memory": func() storage.Backend { return memstore.New(memstore.Options{}) },
		"badger": func() storage.Backend { return apitest.OpenBadger(t, t.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) {
			store := faultinject.Wrap(open(), nil)
			s := servertest.New(t, apitest.WithStorage(store))
			a := apitest.InProcess(t, s)
			w := a.Watch(apitest.ConfigMapsPath + "?watch=1")
			broken := errors.New("disk on fire")
			store.SetPlan(func(c faultinject.Call) faultinject.Fault {
				switch {
				case c.Op == faultinject.OpCommit && c.N%5 == 0:
					return faultinject.Fault{Err: broken}
				case c.Op == faultinject.OpCommit && c.N%7 == 0:
					return faultinject.Fault{Err: broken, Done: true}
				case c.Op == faultinject.OpEvent && c.N%23 == 0:
					return faultinject.Fault{Err: broken}
				case c.Op == faultinject.OpEvent && c.N%31 == 0:
					return faultinject.Fault{End: true}
				}
				return faultinject.Fault{}
			})
			var all sync.WaitGroup
			var mu sync.Mutex
			acknowledged := map[string]string{} // name → version
			for k := range 4 {
				all.Go(func() {
					for i := range 30 {
						n := fmt.Sprintf("c%d-%d", k, i)
						got := a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap(n))
						switch got.Code {
						case 201:
							mu.Lock()
							acknowledged[n] = got.ResourceVersion()
							mu.Unlock()
						case 500:
							got.RequireStatus(t)
							assert.NotContains(t, string(got.Raw), "fire")
						default:
							assert.Fail(t, "unexpected", "%d %s", got.Code, got.Raw)
						}
					}
				})
			}
			all.Wait()
			store.SetPlan(nil)
			store.EndWatches(broken)
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("end"))
			seen, last := map[string]string{}, 0
			for e := w.Next(); e.Name() != "end"; e = w.Next() {
				require.Equal(t, "ADDED", e.Type)
				require.Greater(t, apitest.Revision(t, e.ResourceVersion()), last)
				last = apitest.Revision(t, e.ResourceVersion())
				seen[e.Name()] = e.ResourceVersion()
			}
			listed := map[string]bool{}
			for _, n := range a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names() {
				listed[n] = true
			}
			for n, v := range acknowledged {
				assert.Equal(t, v, seen[n], "the watch missed %s", n)
				assert.True(t, listed[n], "the list misses %s", n)
			}
			assert.Len(t, listed, len(seen)+1)
			s.Settle()
		})
	}
}

// TestFullStorage: a store without room is distinguished from a store that fails.
func TestFullStorage(t *testing.T) {
	t.Parallel()
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	s, _ := apitest.NewErrorFree(t, func(b *server.Builder) { b.Storage = store })
	a := apitest.InProcess(t, s)
	store.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit {
			return faultinject.Fault{Err: fmt.Errorf("%w: 3 MiB are free", storage.ErrFull)}
		}
		return faultinject.Fault{}
	})
	got := a.Must(507, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
	assert.Contains(t, got.Body["message"], "no room")
	store.SetPlan(nil)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
}
