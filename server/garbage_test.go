package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// owned builds graphs of owners for a test.
type owned struct {
	*api
	*servertest.Server
	uids map[string]string
}

func newOwned(t *testing.T, store storage.Backend) *owned {
	s := servertest.New(t, over(store))
	return &owned{inProcess(t, s), s, map[string]string{}}
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

// TestGarbageAcrossScopes: owners count in the same namespace or in none.
func TestGarbageAcrossScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, nil)
		namespace := func(name string, owner ...any) string {
			return text(o.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name, "ownerReferences": owner}}).body, "metadata", "uid")
		}
		other := namespace("other")
		elsewhere := o.must(201, "POST", "/api/v1/namespaces/other/configmaps", newConfigMap("owner"))
		o.uids["owner"] = text(elsewhere.body, "metadata", "uid")
		o.add("across", "owner")
		namespace("cluster", o.owner("owner"))
		cm := newConfigMap("of-namespace")
		at(cm, "metadata").(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "other", "uid": other}}
		o.must(201, "POST", configMaps, cm)
		assert.Equal(t, "of-namespace", o.left())
		o.must(200, "DELETE", "/api/v1/namespaces/other", nil)
		assert.Equal(t, "", o.left())
		o.must(404, "GET", "/api/v1/namespaces/other", nil)
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
