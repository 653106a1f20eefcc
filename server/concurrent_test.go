package server_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

// TestNoLostUpdate counts up the same objects from many writers, with the
// version that they read, in every language.
func TestNoLostUpdate(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		a.must(201, "POST", configMaps, newConfigMap("n", "v", "0"))
		const writers, each = 6, 20
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for done := 0; done < each; {
					cur := a.do("GET", configMaps+"/n", nil)
					v, _ := strconv.Atoi(text(cur.body, "data", "v"))
					var got answer
					switch w % 3 {
					case 0:
						cur.body["data"] = map[string]any{"v": itoa(v + 1)}
						got = a.do("PUT", configMaps+"/n", cur.body)
					case 1:
						got = a.do("PATCH", configMaps+"/n", fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"data":{"v":"%d"}}`, cur.version(), v+1))
					default:
						got = a.do("PATCH", configMaps+"/n", fmt.Sprintf(`[{"op":"test","path":"/data/v","value":"%d"},{"op":"replace","path":"/data/v","value":"%d"}]`, v, v+1),
							"Content-Type", "application/json-patch+json")
					}
					switch got.code {
					case 200:
						done++
					case 409, 422:
					default:
						assert.Fail(t, "unexpected", "%d %s", got.code, got.raw)
						return
					}
				}
			})
		}
		all.Wait()
		assert.Equal(t, itoa(writers*each), text(a.must(200, "GET", configMaps+"/n", nil).body, "data", "v"))
	})
}

// TestGeneratedNames are the caller's own, however many ask at once.
func TestGeneratedNames(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		var all sync.WaitGroup
		var names sync.Map
		for range 8 {
			all.Go(func() {
				for range 40 {
					got := a.do("POST", configMaps, map[string]any{"metadata": map[string]any{"generateName": "g-"}})
					assert.Equal(t, 201, got.code)
					_, taken := names.LoadOrStore(text(got.body, "metadata", "name"), true)
					assert.False(t, taken)
				}
			})
		}
		all.Wait()
		assert.Len(t, a.must(200, "GET", configMaps, nil).names(), 320)
	})
}

// TestRecreate creates, deletes and recreates one name from many sides: exactly
// one wins each time, and a watch tells the story without a gap.
func TestRecreate(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		w := a.watch(configMaps + "?watch=1")
		var all sync.WaitGroup
		var created, deleted atomic.Int64
		for range 6 {
			all.Go(func() {
				for i := range 40 {
					if i%2 == 0 {
						got := a.do("POST", configMaps, newConfigMap("r"))
						assert.Contains(t, []int{201, 409}, got.code)
						if got.code == 201 {
							created.Add(1)
						}
						continue
					}
					got := a.do("DELETE", configMaps+"/r", nil)
					assert.Contains(t, []int{200, 404}, got.code)
					if got.code == 200 {
						deleted.Add(1)
					}
				}
			})
		}
		all.Wait()
		a.do("DELETE", configMaps+"/r", nil)
		a.must(201, "POST", configMaps, newConfigMap("end"))
		there, version := false, 0
		var adds, dels int64
		for e := w.next(); e.name() != "end"; e = w.next() {
			require.Greater(t, number(t, e.version()), version)
			version = number(t, e.version())
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

// TestFinalizerRace: many remove a finalizer each; the object goes once.
func TestFinalizerRace(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		for round := range 5 {
			cm := newConfigMap("f")
			var list []any
			for i := range 6 {
				list = append(list, fmt.Sprint("x.io/", i))
			}
			at(cm, "metadata").(map[string]any)["finalizers"] = list
			a.must(201, "POST", configMaps, cm)
			a.must(200, "DELETE", configMaps+"/f", nil)
			var all sync.WaitGroup
			for i := range 6 {
				all.Go(func() {
					got := a.do("PATCH", configMaps+"/f", fmt.Sprintf(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["x.io/%d"]}}`, i),
						"Content-Type", "application/strategic-merge-patch+json")
					assert.Equal(t, 200, got.code, "%s", got.raw)
				})
			}
			all.Wait()
			a.must(404, "GET", configMaps+"/f", nil)
			require.Empty(t, a.must(200, "GET", configMaps, nil).names(), "round %d", round)
		}
	})
}

// TestFaultyStore: errors, commits that happen although they failed, watches
// that are lost. What was acknowledged stays, and watchers see all of it.
func TestFaultyStore(t *testing.T) {
	for name, open := range map[string]func() storage.Backend{
		"memory": func() storage.Backend { return memstore.New(memstore.Options{}) },
		"badger": func() storage.Backend { return openBadger(t, t.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) {
			store := faultinject.Wrap(open(), nil)
			s := servertest.New(t, over(store))
			a := inProcess(t, s)
			w := a.watch(configMaps + "?watch=1")
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
						got := a.do("POST", configMaps, newConfigMap(n))
						switch got.code {
						case 201:
							mu.Lock()
							acknowledged[n] = got.version()
							mu.Unlock()
						case 500:
							got.wantStatus(t)
							assert.NotContains(t, string(got.raw), "fire")
						default:
							assert.Fail(t, "unexpected", "%d %s", got.code, got.raw)
						}
					}
				})
			}
			all.Wait()
			store.SetPlan(nil)
			store.EndWatches(broken)
			a.must(201, "POST", configMaps, newConfigMap("end"))
			seen, last := map[string]string{}, 0
			for e := w.next(); e.name() != "end"; e = w.next() {
				require.Equal(t, "ADDED", e.Type)
				require.Greater(t, number(t, e.version()), last)
				last = number(t, e.version())
				seen[e.name()] = e.version()
			}
			listed := map[string]bool{}
			for _, n := range a.must(200, "GET", configMaps, nil).names() {
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

// TestFullStorage: a store without room is told apart from one that fails.
func TestFullStorage(t *testing.T) {
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	s, _ := newTough(t, func(b *server.Builder) { b.Storage = store })
	a := inProcess(t, s)
	store.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit {
			return faultinject.Fault{Err: fmt.Errorf("%w: 3 MiB are free", storage.ErrFull)}
		}
		return faultinject.Fault{}
	})
	got := a.must(507, "POST", configMaps, newConfigMap("c"))
	assert.Contains(t, got.body["message"], "no room")
	store.SetPlan(nil)
	a.must(201, "POST", configMaps, newConfigMap("c"))
}
