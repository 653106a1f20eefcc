package server_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

// owned builds graphs of owners for a test.
type owned struct {
	*api
	*servertest.Server
	store storage.Backend
	uids  map[string]string
}

func newOwned(t *testing.T, store storage.Backend) *owned {
	s := servertest.New(t, over(store))
	return &owned{inProcess(t, s), s, store, map[string]string{}}
}

// owner is a reference; a trailing "!" of the name says blockOwnerDeletion.
func (o *owned) owner(name string) map[string]any {
	blocks := strings.HasSuffix(name, "!")
	name = strings.TrimSuffix(name, "!")
	uid := o.uids[name]
	if uid == "" {
		uid = "00000000-0000-0000-0000-00000000dead"
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": blocks}
}

func (o *owned) owners(names []string) []any {
	list := []any{}
	for _, n := range names {
		list = append(list, o.owner(n))
	}
	return list
}

func (o *owned) add(name string, owners ...string) {
	o.t.Helper()
	cm := newConfigMap(name)
	at(cm, "metadata").(map[string]any)["ownerReferences"] = o.owners(owners)
	o.uids[name] = text(o.must(201, "POST", configMaps, cm).body, "metadata", "uid")
}

func (o *owned) finalizers(name, list string) {
	o.t.Helper()
	o.must(200, "PATCH", configMaps+"/"+name, `{"metadata":{"finalizers":[`+list+`]}}`)
}

func (o *owned) left() string {
	o.t.Helper()
	o.Settle()
	return strings.Join(o.must(200, "GET", configMaps, nil).names(), " ")
}

func (o *owned) ownersOf(name string) int {
	o.t.Helper()
	list, _ := at(o.must(200, "GET", configMaps+"/"+name, nil).body, "metadata", "ownerReferences").([]any)
	return len(list)
}

func TestGarbage(t *testing.T) {
	for name, c := range map[string]struct {
		build func(o *owned)
		want  string
	}{
		"background": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.add("c", "b")
			o.add("x")
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Background", nil)
		}, "x"},
		"default policy": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.must(200, "DELETE", configMaps+"/a", nil)
		}, ""},
		"orphan": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.add("c", "b")
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Orphan", nil)
			o.Settle()
			assert.Zero(o.t, o.ownersOf("b"))
			assert.Equal(o.t, 1, o.ownersOf("c"))
		}, "b c"},
		"orphanDependents": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.must(200, "DELETE", configMaps+"/a?orphanDependents=true", nil)
		}, "b"},
		"foreground waits for who blocks": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.finalizers("b", `"x.io/hold"`)
			got := o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
			assert.Equal(o.t, []any{"foregroundDeletion"}, at(got.body, "metadata", "finalizers"))
		}, "a b"},
		"foreground ends when the last blocker goes": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.add("c", "a!")
			o.finalizers("b", `"x.io/hold"`)
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
			assert.Equal(o.t, "a b", o.left())
			o.finalizers("b", "")
		}, ""},
		"foreground ends when the blocker finds another owner": {func(o *owned) {
			o.add("a")
			o.add("o")
			o.add("b", "a!")
			o.finalizers("b", `"x.io/hold"`)
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
			o.Settle()
			o.must(200, "PATCH", configMaps+"/b", map[string]any{"metadata": map[string]any{"ownerReferences": o.owners([]string{"o"})}})
		}, "b o"},
		"foreground does not wait for who does not block": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.finalizers("b", `"x.io/hold"`)
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
		}, "b"},
		"foreground through three": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.add("c", "b!")
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
		}, ""},
		"foreground leaves what others own too": {func(o *owned) {
			o.add("a")
			o.add("o")
			o.add("b", "a!", "o")
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
			o.Settle()
			assert.Equal(o.t, 1, o.ownersOf("b"))
		}, "b o"},
		"background leaves what others own too": {func(o *owned) {
			o.add("a")
			o.add("o")
			o.add("b", "a", "o")
			o.must(200, "DELETE", configMaps+"/a", nil)
			o.Settle()
			assert.Equal(o.t, 1, o.ownersOf("b"))
		}, "b o"},
		"all owners gone": {func(o *owned) {
			o.add("a")
			o.add("o")
			o.add("b", "a", "o")
			o.must(200, "DELETE", configMaps+"/a", nil)
			o.must(200, "DELETE", configMaps+"/o", nil)
		}, ""},
		"cycle in the foreground": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.must(200, "PATCH", configMaps+"/a", map[string]any{"metadata": map[string]any{"ownerReferences": o.owners([]string{"b!"})}})
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
		}, ""},
		"own owner": {func(o *owned) {
			o.add("a")
			o.must(200, "PATCH", configMaps+"/a", map[string]any{"metadata": map[string]any{"ownerReferences": o.owners([]string{"a!"})}})
			assert.Equal(o.t, "a", o.left())
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
		}, ""},
		"owner that never was": {func(o *owned) { o.add("b", "never") }, ""},
		"owner that never was, beside one that is": {func(o *owned) {
			o.add("a")
			o.add("b", "a", "never")
			o.Settle()
			assert.Equal(o.t, 1, o.ownersOf("b"))
		}, "a b"},
		"the owner's name is taken again": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Orphan", nil)
			o.Settle()
			o.uids["a"] = "00000000-0000-0000-0000-00000000beef"
			o.add("c", "a")
			o.add("a")
		}, "a b"},
		"a later policy wins": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.finalizers("a", `"x.io/hold"`)
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground&dryRun=All", nil)
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Orphan", nil)
			o.Settle()
			o.finalizers("a", "")
		}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwned(t, nil)
				c.build(o)
				assert.Equal(t, c.want, o.left())
			})
		})
	}
}

// TestGarbageAcrossScopes: an owner reference names an object of the same namespace or a
// cluster-scoped one, so an owner in another namespace is absent; an event says so, once. A
// cluster-scoped object cannot have an owner of a namespaced kind and stays.
func TestGarbageAcrossScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, nil)
		for _, ns := range []string{"other", "cluster", "never"} {
			o.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": ns}})
			o.must(201, "POST", "/api/v1/namespaces/"+ns+"/configmaps", newConfigMap("content"))
		}
		o.uids["owner"] = text(o.must(201, "POST", "/api/v1/namespaces/other/configmaps", newConfigMap("owner")).body, "metadata", "uid")
		o.add("solid")
		o.add("across", "owner!")
		o.add("beside-absent", "owner", "never")
		o.add("beside-solid", "owner", "solid")
		o.own("/api/v1/namespaces/cluster", o.owner("owner"))
		o.own("/api/v1/namespaces/never", o.owner("never"))
		other := text(o.must(200, "GET", "/api/v1/namespaces/other", nil).body, "metadata", "uid")
		o.add("of-namespace")
		o.own(configMaps+"/of-namespace", map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "other", "uid": other})
		assert.Equal(t, "beside-solid of-namespace solid", o.left())
		assert.Equal(t, 1, o.ownersOf("beside-solid"))
		o.own("/api/v1/namespaces/cluster", o.owner("owner"), o.owner("never"))
		o.Settle()
		var events []string
		for _, about := range []string{"across", "beside-absent", "beside-solid"} {
			events = append(events, `ConfigMap `+about+`: ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: `+o.uids["owner"]+`] does not exist in namespace "default"`)
		}
		assert.Equal(t, append(events,
			`Namespace cluster: ownerRef [v1/ConfigMap, namespace: , name: owner, uid: `+o.uids["owner"]+`] does not exist in namespace ""`,
			`Namespace never: ownerRef [v1/ConfigMap, namespace: , name: never, uid: 00000000-0000-0000-0000-00000000dead] does not exist in namespace ""`,
		), o.events())

		o.must(200, "DELETE", "/api/v1/namespaces/other/configmaps/owner?propagationPolicy=Foreground", nil)
		assert.Equal(t, "beside-solid of-namespace solid", o.left())
		o.must(404, "GET", "/api/v1/namespaces/other/configmaps/owner", nil)
		o.must(200, "DELETE", "/api/v1/namespaces/other", nil)
		assert.Equal(t, "beside-solid solid", o.left())
		for _, ns := range []string{"cluster", "never"} {
			assert.Equal(t, []string{"content"}, o.must(200, "GET", "/api/v1/namespaces/"+ns+"/configmaps", nil).names())
		}
	})
}

// TestGarbageAcrossNamespacesAfterRestart: a server that starts over objects whose owners are in
// another namespace collects them, and not the owners.
func TestGarbageAcrossNamespacesAfterRestart(t *testing.T) {
	dir := t.TempDir()
	t.Run("before", func(t *testing.T) {
		store := openBadger(t, dir)
		s := servertest.New(t, over(store), func(b *server.Builder) { b.RunControllers = []string{"*", "-garbagecollector"} })
		o := &owned{inProcess(t, s), s, store, map[string]string{}}
		o.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "other"}})
		o.uids["owner"] = text(o.must(201, "POST", "/api/v1/namespaces/other/configmaps", newConfigMap("owner")).body, "metadata", "uid")
		o.add("x", "owner")
		assert.Equal(t, "x", o.left())
	})
	t.Run("after", func(t *testing.T) {
		o := newOwned(t, openBadger(t, dir))
		assert.Equal(t, "", o.left())
		o.must(200, "GET", "/api/v1/namespaces/other/configmaps/owner", nil)
	})
}

// own sets the owners of an object.
func (o *owned) own(path string, owners ...any) {
	o.t.Helper()
	o.must(200, "PATCH", path, map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
}

// events are those of default, each in a line.
func (o *owned) events() (lines []string) {
	o.t.Helper()
	list, _ := o.must(200, "GET", "/api/v1/namespaces/default/events", nil).body["items"].([]any)
	for _, e := range list {
		require.Equal(o.t, "OwnerRefInvalidNamespace Warning", text(e, "reason")+" "+text(e, "type"))
		lines = append(lines, text(e, "involvedObject", "kind")+" "+text(e, "involvedObject", "name")+": "+text(e, "message"))
	}
	slices.Sort(lines)
	return lines
}

const boats = "/apis/sea.example.com/v1/boats"

// boat makes an object of a custom kind, and returns a reference to it.
func (o *owned) boat(version string) map[string]any {
	o.t.Helper()
	made := o.must(201, "POST", boats, `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"pequod"}}`)
	return map[string]any{"apiVersion": "sea.example.com/" + version, "kind": "Boat", "name": "pequod", "uid": text(made.body, "metadata", "uid"), "blockOwnerDeletion": true}
}

// TestGarbageOfUnknownKinds: an owner of a kind that is not served may be there
// or not, so what it owns stays until that is known.
func TestGarbageOfUnknownKinds(t *testing.T) {
	for name, c := range map[string]struct {
		build func(o *owned)
		want  string
	}{
		"a kind that never was": {func(o *owned) {
			o.own(configMaps+"/x", map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "n", "uid": "u"})
		}, "x"},
		"a kind of which nothing is kept": {func(o *owned) {
			o.own(configMaps+"/x", map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "name": "n", "uid": "u"})
		}, "x"},
		"a kind that comes, its object does not": {func(o *owned) {
			o.own(configMaps+"/x", map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Boat", "name": "pequod", "uid": "u"})
			assert.Equal(o.t, "x", o.left())
			o.must(201, "POST", crdPath, boatDefinition("boats", "Boat"))
		}, ""},
		"the definition goes, the objects stay": {func(o *owned) {
			o.must(201, "POST", crdPath, boatDefinition("boats", "Boat"))
			o.Settle()
			o.own(configMaps+"/x", o.boat("v1"))
			o.Settle()
			definition := o.lose("customresourcedefinitions.apiextensions.k8s.io//boats.sea.example.com")
			assert.Equal(o.t, "x", o.left())
			assert.Equal(o.t, 404, o.do("GET", boats, nil).code)
			o.restore(definition)
			assert.Equal(o.t, "x", o.left())
			o.must(200, "GET", boats+"/pequod", nil)
		}, "x"},
		"the definition goes and comes, and then its object goes": {func(o *owned) {
			o.must(201, "POST", crdPath, boatDefinition("boats", "Boat"))
			o.Settle()
			o.own(configMaps+"/x", o.boat("v1"))
			definition := o.lose("customresourcedefinitions.apiextensions.k8s.io//boats.sea.example.com")
			assert.Equal(o.t, "x", o.left())
			o.restore(definition)
			o.Settle()
			o.must(200, "DELETE", boats+"/pequod", nil)
		}, ""},
		"a definition is deleted with its objects": {func(o *owned) {
			o.must(201, "POST", crdPath, boatDefinition("boats", "Boat"))
			o.Settle()
			o.own(configMaps+"/x", o.boat("v1"))
			o.must(200, "DELETE", crdPath+"/boats.sea.example.com", nil)
			o.Settle()
			o.must(404, "GET", crdPath+"/boats.sea.example.com", nil)
		}, ""},
		"another served version": {func(o *owned) {
			o.twoVersions(true)
			o.own(configMaps+"/x", o.boat("v2"))
			assert.Equal(o.t, "x", o.left())
			o.must(200, "DELETE", boats+"/pequod", nil)
		}, ""},
		"a version that is not served": {func(o *owned) {
			o.twoVersions(false)
			o.own(configMaps+"/x", map[string]any{"apiVersion": "sea.example.com/v2", "kind": "Boat", "name": "pequod", "uid": "u"})
		}, "x"},
		"another uid": {func(o *owned) {
			o.add("y")
			o.uids["y"] = "00000000-0000-0000-0000-00000000beef"
			o.own(configMaps+"/x", o.owner("y"))
		}, "y"},
		"another name": {func(o *owned) {
			o.add("y")
			o.uids["z"] = o.uids["y"]
			o.own(configMaps+"/x", o.owner("z"))
		}, "y"},
		"beside one that is gone": {func(o *owned) {
			o.own(configMaps+"/x", o.owner("never"), map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "n", "uid": "u"})
		}, "x"},
		"beside one that goes in the foreground": {func(o *owned) {
			o.add("y")
			o.own(configMaps+"/x", o.owner("y!"), map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "n", "uid": "u"})
			o.must(200, "DELETE", configMaps+"/y?propagationPolicy=Foreground", nil)
			assert.Equal(o.t, "x y", o.left())
			o.own(configMaps+"/x", o.owner("y!"))
		}, ""},
		"beside one that is orphaned": {func(o *owned) {
			o.add("y")
			o.own(configMaps+"/x", o.owner("y!"), map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "n", "uid": "u"})
			o.must(200, "DELETE", configMaps+"/y?propagationPolicy=Orphan", nil)
			o.Settle()
			assert.Equal(o.t, 1, o.ownersOf("x"))
		}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwned(t, memstore.New(memstore.Options{}))
				o.add("x")
				c.build(o)
				assert.Equal(t, c.want, o.left())
				time.Sleep(10 * time.Minute)
				assert.Equal(t, c.want, o.left(), "later")
			})
		})
	}
}

// twoVersions defines boats in v1 and v2.
func (o *owned) twoVersions(served bool) {
	o.t.Helper()
	crd := boatDefinition("boats", "Boat")
	spec := crd["spec"].(map[string]any)
	second := maps.Clone(spec["versions"].([]any)[0].(map[string]any))
	second["name"], second["storage"], second["served"] = "v2", false, served
	spec["versions"] = append(spec["versions"].([]any), second)
	o.must(201, "POST", crdPath, crd)
	o.Settle()
}

// lose removes a record from the store, behind the server's back.
func (o *owned) lose(key string) storage.Record {
	o.t.Helper()
	rec, err := o.store.Get(o.t.Context(), key, 0)
	require.NoError(o.t, err)
	_, err = o.store.Commit(o.t.Context(), storage.Write{Key: key, Expect: rec.Revision})
	require.NoError(o.t, err)
	return rec
}

func (o *owned) restore(rec storage.Record) {
	o.t.Helper()
	_, err := o.store.Commit(o.t.Context(), storage.Write{Key: rec.Key, Value: rec.Value})
	require.NoError(o.t, err)
}

// TestGarbageLooksAtTheStore: as long as the store does not tell, nobody is
// collected for an owner that is not known.
func TestGarbageLooksAtTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		s := servertest.New(t, over(store))
		o := &owned{inProcess(t, s), s, store, map[string]string{}}
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpGet {
				return faultinject.Fault{Err: errors.New("the disk does not answer")}
			}
			return faultinject.Fault{}
		})
		o.add("x", "never")
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []string{"x"}, o.must(200, "GET", configMaps, nil).names())
		store.SetPlan(nil)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, "", o.left())
	})
}

// TestGarbageAfterRestart: what was under way when a server ended goes on, over
// the same directory.
func TestGarbageAfterRestart(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			o := newOwned(t, openBadger(t, dir))
			name := fmt.Sprint("ns", round)
			o.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name}})
			o.must(201, "POST", "/api/v1/namespaces/"+name+"/configmaps", newConfigMap("x"))
			o.add("a")
			o.add("b", "a!")
			o.finalizers("b", `"x.io/hold"`)
			o.must(200, "DELETE", configMaps+"/a?propagationPolicy=Foreground", nil)
			assert.Equal(t, "a b", o.left())
			o.must(200, "DELETE", "/api/v1/namespaces/"+name, nil)
			o.finalizers("b", "")
		})
		t.Run(strconv.Itoa(round)+" again", func(t *testing.T) {
			o := newOwned(t, openBadger(t, dir))
			assert.Equal(t, "", o.left())
			o.must(404, "GET", fmt.Sprint("/api/v1/namespaces/ns", round), nil)
			assert.Empty(t, o.must(200, "GET", "/api/v1/configmaps", nil).names())
		})
	}
}

// TestNamespaceDeletion empties namespaces while others fill them.
func TestNamespaceDeletion(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		s := servertest.New(t, over(store))
		a := inProcess(t, s)
		for round := range 5 {
			ns := fmt.Sprint("/api/v1/namespaces/ns", round)
			a.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": fmt.Sprint("ns", round)}})
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					for i := 0; ; i++ {
						got := a.do("POST", ns+"/configmaps", newConfigMap(fmt.Sprint("c", w, "-", i)))
						if got.code == 201 {
							continue
						}
						assert.Contains(t, []int{403, 404}, got.code, "%s", got.raw)
						if got.code == 403 {
							assert.Equal(t, []string{"metadata.namespace NamespaceTerminating"}, got.causes())
						}
						if got.code == 404 || i > 5000 {
							return
						}
					}
				})
			}
			a.must(200, "DELETE", ns, nil)
			writers.Wait()
			s.Settle()
			a.must(404, "GET", ns, nil)
		}
		assert.Empty(t, a.must(200, "GET", "/api/v1/configmaps", nil).names(), "objects outlived their namespace")
	})
}

// TestEventsExpire an hour after they were last written, also those that say
// that they are from the future.
func TestEventsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t)
		a := inProcess(t, s)
		const events = "/api/v1/namespaces/default/events"
		event := func(name string, last time.Time) map[string]any {
			return map[string]any{"metadata": map[string]any{"name": name}, "involvedObject": map[string]any{"kind": "Pod", "name": "p", "namespace": "default"},
				"reason": "R", "type": "Normal", "lastTimestamp": last.UTC().Format(time.RFC3339)}
		}
		a.must(201, "POST", events, event("old", time.Now()))
		a.must(201, "POST", events, event("future", time.Now().Add(10000*time.Hour)))
		kept := a.must(201, "POST", events, event("kept", time.Now()))
		time.Sleep(50 * time.Minute)
		kept.body["lastTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		a.must(200, "PUT", events+"/kept", kept.body)
		time.Sleep(11 * time.Minute)
		s.Settle()
		assert.Equal(t, []string{"kept"}, a.must(200, "GET", events, nil).names())
		time.Sleep(time.Hour)
		s.Settle()
		assert.Empty(t, a.must(200, "GET", events, nil).names())
	})
}

// TestSettleMeansDone: after Settle nothing is left to come.
func TestSettleMeansDone(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		o := newOwned(t, store)
		for i := range 20 {
			o.add("root")
			for j := range 5 {
				o.add(fmt.Sprint("leaf", j), "root")
			}
			o.must(200, "DELETE", configMaps+"/root", nil)
			require.Equal(t, "", o.left(), "round %d", i)
		}
	})
}
