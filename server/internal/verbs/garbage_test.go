package verbs_test

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

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// owned builds objects with owner references for a test.
type owned struct {
	*apitest.Client
	*servertest.Server
	store storage.Backend
	uids  map[string]string
}

func newOwned(t *testing.T, store storage.Backend) *owned {
	s := servertest.New(t, apitest.WithStorage(store))
	return &owned{apitest.InProcess(t, s), s, store, map[string]string{}}
}

// owner returns an owner reference to the object with a name. A trailing "!" sets blockOwnerDeletion.
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
	o.T.Helper()
	cm := apitest.NewConfigMap(name)
	apitest.Nested(cm, "metadata").(map[string]any)["ownerReferences"] = o.owners(owners)
	o.uids[name] = apitest.NestedString(o.Must(201, "POST", apitest.ConfigMapsPath, cm).Body, "metadata", "uid")
}

func (o *owned) finalizers(name, list string) {
	o.T.Helper()
	o.Must(200, "PATCH", apitest.ConfigMapsPath+"/"+name, `{"metadata":{"finalizers":[`+list+`]}}`)
}

func (o *owned) left() string {
	o.T.Helper()
	o.Settle()
	return strings.Join(o.Must(200, "GET", apitest.ConfigMapsPath, nil).Names(), " ")
}

func (o *owned) ownersOf(name string) int {
	o.T.Helper()
	list, _ := apitest.Nested(o.Must(200, "GET", apitest.ConfigMapsPath+"/"+name, nil).Body, "metadata", "ownerReferences").([]any)
	return len(list)
}

func TestDependentsAreDeletedByPolicy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		build func(o *owned)
		want  string
	}{
		"background": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.add("c", "b")
			o.add("x")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Background", nil)
		}, "x"},
		"default policy": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
		}, ""},
		"orphan": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.add("c", "b")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Orphan", nil)
			o.Settle()
			assert.Zero(o.T, o.ownersOf("b"))
			assert.Equal(o.T, 1, o.ownersOf("c"))
		}, "b c"},
		"orphanDependents": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?orphanDependents=true", nil)
		}, "b"},
		"foreground waits for who blocks": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.finalizers("b", `"x.io/hold"`)
			got := o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
			assert.Equal(o.T, []any{"foregroundDeletion"}, apitest.Nested(got.Body, "metadata", "finalizers"))
		}, "a b"},
		"foreground ends when the last blocker goes": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.add("c", "a!")
			o.finalizers("b", `"x.io/hold"`)
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
			assert.Equal(o.T, "a b", o.left())
			o.finalizers("b", "")
		}, ""},
		"foreground ends when the blocker finds another owner": {func(o *owned) {
			o.add("a")
			o.add("o")
			o.add("b", "a!")
			o.finalizers("b", `"x.io/hold"`)
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
			o.Settle()
			o.Must(200, "PATCH", apitest.ConfigMapsPath+"/b", map[string]any{"metadata": map[string]any{"ownerReferences": o.owners([]string{"o"})}})
		}, "b o"},
		"foreground does not wait for who does not block": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.finalizers("b", `"x.io/hold"`)
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
		}, "b"},
		"foreground through three": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.add("c", "b!")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
		}, ""},
		"foreground leaves what others own too": {func(o *owned) {
			o.add("a")
			o.add("o")
			o.add("b", "a!", "o")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
			o.Settle()
			assert.Equal(o.T, 1, o.ownersOf("b"))
		}, "b o"},
		"background leaves what others own too": {func(o *owned) {
			o.add("a")
			o.add("o")
			o.add("b", "a", "o")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
			o.Settle()
			assert.Equal(o.T, 1, o.ownersOf("b"))
		}, "b o"},
		"all owners gone": {func(o *owned) {
			o.add("a")
			o.add("o")
			o.add("b", "a", "o")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/o", nil)
		}, ""},
		"cycle in the foreground": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", map[string]any{"metadata": map[string]any{"ownerReferences": o.owners([]string{"b!"})}})
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
		}, ""},
		"own owner": {func(o *owned) {
			o.add("a")
			o.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", map[string]any{"metadata": map[string]any{"ownerReferences": o.owners([]string{"a!"})}})
			assert.Equal(o.T, "a", o.left())
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
		}, ""},
		"owner that never was": {func(o *owned) { o.add("b", "never") }, ""},
		"owner that never was, beside one that is": {func(o *owned) {
			o.add("a")
			o.add("b", "a", "never")
			o.Settle()
			assert.Equal(o.T, 1, o.ownersOf("b"))
		}, "a b"},
		"the owner's name is taken again": {func(o *owned) {
			o.add("a")
			o.add("b", "a")
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Orphan", nil)
			o.Settle()
			o.uids["a"] = "00000000-0000-0000-0000-00000000beef"
			o.add("c", "a")
			o.add("a")
		}, "a b"},
		"a later policy wins": {func(o *owned) {
			o.add("a")
			o.add("b", "a!")
			o.finalizers("a", `"x.io/hold"`)
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground&dryRun=All", nil)
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Orphan", nil)
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

// TestGarbageAcrossScopes: an owner reference refers to an object in the same namespace or a cluster-scoped object.
// An owner in another namespace is absent, and is reported by a single event. A cluster-scoped object with an owner
// of a namespaced kind is kept.
func TestGarbageAcrossScopes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, nil)
		for _, ns := range []string{"other", "cluster", "never"} {
			o.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": ns}})
			o.Must(201, "POST", "/api/v1/namespaces/"+ns+"/configmaps", apitest.NewConfigMap("content"))
		}
		o.uids["owner"] = apitest.NestedString(o.Must(201, "POST", "/api/v1/namespaces/other/configmaps", apitest.NewConfigMap("owner")).Body, "metadata", "uid")
		o.add("solid")
		o.add("across", "owner!")
		o.add("beside-absent", "owner", "never")
		o.add("beside-solid", "owner", "solid")
		o.own("/api/v1/namespaces/cluster", o.owner("owner"))
		o.own("/api/v1/namespaces/never", o.owner("never"))
		other := apitest.NestedString(o.Must(200, "GET", "/api/v1/namespaces/other", nil).Body, "metadata", "uid")
		o.add("of-namespace")
		o.own(apitest.ConfigMapsPath+"/of-namespace", map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "other", "uid": other})
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

		o.Must(200, "DELETE", "/api/v1/namespaces/other/configmaps/owner?propagationPolicy=Foreground", nil)
		assert.Equal(t, "beside-solid of-namespace solid", o.left())
		o.Must(404, "GET", "/api/v1/namespaces/other/configmaps/owner", nil)
		o.Must(200, "DELETE", "/api/v1/namespaces/other", nil)
		assert.Equal(t, "beside-solid solid", o.left())
		for _, ns := range []string{"cluster", "never"} {
			assert.Equal(t, []string{"content"}, o.Must(200, "GET", "/api/v1/namespaces/"+ns+"/configmaps", nil).Names())
		}
	})
}

// TestGarbageAcrossNamespacesAfterRestart: a restarted server collects objects whose owners are in another namespace,
// and not the owners.
func TestGarbageAcrossNamespacesAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Run("before", func(t *testing.T) {
		store := apitest.OpenBadger(t, dir)
		s := servertest.New(t, apitest.WithStorage(store), func(b *server.Builder) { b.RunControllers = []string{"*", "-garbagecollector"} })
		o := &owned{apitest.InProcess(t, s), s, store, map[string]string{}}
		o.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "other"}})
		o.uids["owner"] = apitest.NestedString(o.Must(201, "POST", "/api/v1/namespaces/other/configmaps", apitest.NewConfigMap("owner")).Body, "metadata", "uid")
		o.add("x", "owner")
		assert.Equal(t, "x", o.left())
	})
	t.Run("after", func(t *testing.T) {
		o := newOwned(t, apitest.OpenBadger(t, dir))
		assert.Equal(t, "", o.left())
		o.Must(200, "GET", "/api/v1/namespaces/other/configmaps/owner", nil)
	})
}

// own sets the owners of an object.
func (o *owned) own(path string, owners ...any) {
	o.T.Helper()
	o.Must(200, "PATCH", path, map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
}

// events returns the events in the namespace default, one in each line.
func (o *owned) events() (lines []string) {
	o.T.Helper()
	list, _ := o.Must(200, "GET", "/api/v1/namespaces/default/events", nil).Body["items"].([]any)
	for _, e := range list {
		require.Equal(o.T, "OwnerRefInvalidNamespace Warning", apitest.NestedString(e, "reason")+" "+apitest.NestedString(e, "type"))
		lines = append(lines, apitest.NestedString(e, "involvedObject", "kind")+" "+apitest.NestedString(e, "involvedObject", "name")+": "+apitest.NestedString(e, "message"))
	}
	slices.Sort(lines)
	return lines
}

const boats = "/apis/sea.example.com/v1/boats"

// boat creates an object of a custom kind and returns an owner reference to it.
func (o *owned) boat(version string) map[string]any {
	o.T.Helper()
	made := o.Must(201, "POST", boats, `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"pequod"}}`)
	return map[string]any{"apiVersion": "sea.example.com/" + version, "kind": "Boat", "name": "pequod", "uid": apitest.NestedString(made.Body, "metadata", "uid"), "blockOwnerDeletion": true}
}

// TestGarbageOfUnknownKinds: whether an owner of a kind that is not served exists is unknown, so its dependents are
// kept until the kind is served.
func TestGarbageOfUnknownKinds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		build func(o *owned)
		want  string
	}{
		"a kind that never was": {func(o *owned) {
			o.own(apitest.ConfigMapsPath+"/x", map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "n", "uid": "u"})
		}, "x"},
		"a kind of which nothing is kept": {func(o *owned) {
			o.own(apitest.ConfigMapsPath+"/x", map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "name": "n", "uid": "u"})
		}, "x"},
		"a kind that comes, its object does not": {func(o *owned) {
			o.own(apitest.ConfigMapsPath+"/x", map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Boat", "name": "pequod", "uid": "u"})
			assert.Equal(o.T, "x", o.left())
			o.Must(201, "POST", apitest.DefinitionsPath, boatDefinition("boats", "Boat"))
		}, ""},
		"the definition goes, the objects stay": {func(o *owned) {
			o.Must(201, "POST", apitest.DefinitionsPath, boatDefinition("boats", "Boat"))
			o.Settle()
			o.own(apitest.ConfigMapsPath+"/x", o.boat("v1"))
			o.Settle()
			definition := o.lose("customresourcedefinitions.apiextensions.k8s.io//boats.sea.example.com")
			assert.Equal(o.T, "x", o.left())
			assert.Equal(o.T, 404, o.Do("GET", boats, nil).Code)
			o.restore(definition)
			assert.Equal(o.T, "x", o.left())
			o.Must(200, "GET", boats+"/pequod", nil)
		}, "x"},
		"the definition goes and comes, and then its object goes": {func(o *owned) {
			o.Must(201, "POST", apitest.DefinitionsPath, boatDefinition("boats", "Boat"))
			o.Settle()
			o.own(apitest.ConfigMapsPath+"/x", o.boat("v1"))
			definition := o.lose("customresourcedefinitions.apiextensions.k8s.io//boats.sea.example.com")
			assert.Equal(o.T, "x", o.left())
			o.restore(definition)
			o.Settle()
			o.Must(200, "DELETE", boats+"/pequod", nil)
		}, ""},
		"a definition is deleted with its objects": {func(o *owned) {
			o.Must(201, "POST", apitest.DefinitionsPath, boatDefinition("boats", "Boat"))
			o.Settle()
			o.own(apitest.ConfigMapsPath+"/x", o.boat("v1"))
			o.Must(200, "DELETE", apitest.DefinitionsPath+"/boats.sea.example.com", nil)
			o.Settle()
			o.Must(404, "GET", apitest.DefinitionsPath+"/boats.sea.example.com", nil)
		}, ""},
		"another served version": {func(o *owned) {
			o.twoVersions(true)
			o.own(apitest.ConfigMapsPath+"/x", o.boat("v2"))
			assert.Equal(o.T, "x", o.left())
			o.Must(200, "DELETE", boats+"/pequod", nil)
		}, ""},
		"a version that is not served": {func(o *owned) {
			o.twoVersions(false)
			o.own(apitest.ConfigMapsPath+"/x", map[string]any{"apiVersion": "sea.example.com/v2", "kind": "Boat", "name": "pequod", "uid": "u"})
		}, "x"},
		"another uid": {func(o *owned) {
			o.add("y")
			o.uids["y"] = "00000000-0000-0000-0000-00000000beef"
			o.own(apitest.ConfigMapsPath+"/x", o.owner("y"))
		}, "y"},
		"another name": {func(o *owned) {
			o.add("y")
			o.uids["z"] = o.uids["y"]
			o.own(apitest.ConfigMapsPath+"/x", o.owner("z"))
		}, "y"},
		"beside one that is gone": {func(o *owned) {
			o.own(apitest.ConfigMapsPath+"/x", o.owner("never"), map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "n", "uid": "u"})
		}, "x"},
		"beside one that goes in the foreground": {func(o *owned) {
			o.add("y")
			o.own(apitest.ConfigMapsPath+"/x", o.owner("y!"), map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "n", "uid": "u"})
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/y?propagationPolicy=Foreground", nil)
			assert.Equal(o.T, "x y", o.left())
			o.own(apitest.ConfigMapsPath+"/x", o.owner("y!"))
		}, ""},
		"beside one that is orphaned": {func(o *owned) {
			o.add("y")
			o.own(apitest.ConfigMapsPath+"/x", o.owner("y!"), map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "n", "uid": "u"})
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/y?propagationPolicy=Orphan", nil)
			o.Settle()
			assert.Equal(o.T, 1, o.ownersOf("x"))
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

// twoVersions defines the kind Boat in v1 and v2.
func (o *owned) twoVersions(served bool) {
	o.T.Helper()
	crd := boatDefinition("boats", "Boat")
	spec := crd["spec"].(map[string]any)
	second := maps.Clone(spec["versions"].([]any)[0].(map[string]any))
	second["name"], second["storage"], second["served"] = "v2", false, served
	spec["versions"] = append(spec["versions"].([]any), second)
	o.Must(201, "POST", apitest.DefinitionsPath, crd)
	o.Settle()
}

// lose deletes a record from the store without the server, and returns it.
func (o *owned) lose(key string) storage.Record {
	o.T.Helper()
	rec, err := o.store.Get(o.T.Context(), key, 0)
	require.NoError(o.T, err)
	_, err = o.store.Commit(o.T.Context(), storage.Write{Key: key, Expect: rec.Revision})
	require.NoError(o.T, err)
	return rec
}

func (o *owned) restore(rec storage.Record) {
	o.T.Helper()
	_, err := o.store.Commit(o.T.Context(), storage.Write{Key: rec.Key, Value: rec.Value})
	require.NoError(o.T, err)
}

// TestGarbageReadsOwnersFromStore: as long as an owner cannot be read from the store, its dependents are not
// collected.
func TestGarbageReadsOwnersFromStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		s := servertest.New(t, apitest.WithStorage(store))
		o := &owned{apitest.InProcess(t, s), s, store, map[string]string{}}
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpGet {
				return faultinject.Fault{Err: errors.New("the disk does not answer")}
			}
			return faultinject.Fault{}
		})
		o.add("x", "never")
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []string{"x"}, o.Must(200, "GET", apitest.ConfigMapsPath, nil).Names())
		store.SetPlan(nil)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, "", o.left())
	})
}

// TestGarbageAfterRestart: a server over the same directory completes the collection that was interrupted.
func TestGarbageAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 3 {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			o := newOwned(t, apitest.OpenBadger(t, dir))
			name := fmt.Sprint("ns", round)
			o.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name}})
			o.Must(201, "POST", "/api/v1/namespaces/"+name+"/configmaps", apitest.NewConfigMap("x"))
			o.add("a")
			o.add("b", "a!")
			o.finalizers("b", `"x.io/hold"`)
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a?propagationPolicy=Foreground", nil)
			assert.Equal(t, "a b", o.left())
			o.Must(200, "DELETE", "/api/v1/namespaces/"+name, nil)
			o.finalizers("b", "")
		})
		t.Run(strconv.Itoa(round)+" again", func(t *testing.T) {
			o := newOwned(t, apitest.OpenBadger(t, dir))
			assert.Equal(t, "", o.left())
			o.Must(404, "GET", fmt.Sprint("/api/v1/namespaces/ns", round), nil)
			assert.Empty(t, o.Must(200, "GET", "/api/v1/configmaps", nil).Names())
		})
	}
}

// TestNamespaceDeletion: namespaces are emptied while other clients create objects in them.
func TestNamespaceDeletion(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		s := servertest.New(t, apitest.WithStorage(store))
		a := apitest.InProcess(t, s)
		for round := range 5 {
			ns := fmt.Sprint("/api/v1/namespaces/ns", round)
			a.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": fmt.Sprint("ns", round)}})
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					for i := 0; ; i++ {
						got := a.Do("POST", ns+"/configmaps", apitest.NewConfigMap(fmt.Sprint("c", w, "-", i)))
						if got.Code == 201 {
							continue
						}
						assert.Contains(t, []int{403, 404}, got.Code, "%s", got.Raw)
						if got.Code == 403 {
							assert.Equal(t, []string{"metadata.namespace NamespaceTerminating"}, got.Causes())
						}
						if got.Code == 404 || i > 5000 {
							return
						}
					}
				})
			}
			a.Must(200, "DELETE", ns, nil)
			writers.Wait()
			s.Settle()
			a.Must(404, "GET", ns, nil)
		}
		assert.Empty(t, a.Must(200, "GET", "/api/v1/configmaps", nil).Names(), "objects outlived their namespace")
	})
}

// TestEventsExpire: events expire an hour after they were last written, including events with a time in the future.
func TestEventsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t)
		a := apitest.InProcess(t, s)
		const events = "/api/v1/namespaces/default/events"
		event := func(name string, last time.Time) map[string]any {
			return map[string]any{"metadata": map[string]any{"name": name}, "involvedObject": map[string]any{"kind": "Pod", "name": "p", "namespace": "default"},
				"reason": "R", "type": "Normal", "lastTimestamp": last.UTC().Format(time.RFC3339)}
		}
		a.Must(201, "POST", events, event("old", time.Now()))
		a.Must(201, "POST", events, event("future", time.Now().Add(10000*time.Hour)))
		kept := a.Must(201, "POST", events, event("kept", time.Now()))
		time.Sleep(50 * time.Minute)
		kept.Body["lastTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		a.Must(200, "PUT", events+"/kept", kept.Body)
		time.Sleep(11 * time.Minute)
		s.Settle()
		assert.Equal(t, []string{"kept"}, a.Must(200, "GET", events, nil).Names())
		time.Sleep(time.Hour)
		s.Settle()
		assert.Empty(t, a.Must(200, "GET", events, nil).Names())
	})
}

// TestSettleWaitsForControllers: after Settle, the controllers have no more work.
func TestSettleWaitsForControllers(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		o := newOwned(t, store)
		for i := range 20 {
			o.add("root")
			for j := range 5 {
				o.add(fmt.Sprint("leaf", j), "root")
			}
			o.Must(200, "DELETE", apitest.ConfigMapsPath+"/root", nil)
			require.Equal(t, "", o.left(), "round %d", i)
		}
	})
}
