package server_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

const pods = "/api/v1/namespaces/default/pods"

// newPod is a body; more goes into its spec.
func newPod(name, more string, finalizers ...string) string {
	list := "[]"
	if len(finalizers) > 0 {
		list = `["` + strings.Join(finalizers, `","`) + `"]`
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"finalizers":%s},"spec":{%s"containers":[{"name":"c","image":"i"}]}}`, name, list, more)
}

// story tells an event of a pod: its type, generation, grace period if it is being
// deleted, and whether something holds it.
func story(e watched) string {
	m, _ := e.Object["metadata"].(map[string]any)
	out := fmt.Sprint(e.Type, " ", m["generation"])
	if m["deletionTimestamp"] != nil {
		out += fmt.Sprint(" grace ", m["deletionGracePeriodSeconds"])
	}
	if m["finalizers"] != nil {
		out += " held"
	}
	return out
}

// TestPodsAreSeenEnding: a pod that goes at once is seen with its end before it
// goes, whoever deletes it and however.
func TestPodsAreSeenEnding(t *testing.T) {
	const bound = `"nodeName":"n",`
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		for _, c := range []struct {
			name, pod string
			steps     [][3]string // method, path, body
			want      []string
		}{
			{"on no node", newPod("p", ""), [][3]string{{"DELETE", "/p", ""}},
				[]string{"ADDED 1", "MODIFIED 2 grace 0", "DELETED 2 grace 0"}},
			{"with time that it does not need", newPod("p", ""), [][3]string{{"DELETE", "/p", `{"gracePeriodSeconds":20}`}},
				[]string{"ADDED 1", "MODIFIED 2 grace 0", "DELETED 2 grace 0"}},
			{"dry run first", newPod("p", ""), [][3]string{{"DELETE", "/p?dryRun=All", ""}, {"DELETE", "?dryRun=All", ""}, {"DELETE", "/p", ""}},
				[]string{"ADDED 1", "MODIFIED 2 grace 0", "DELETED 2 grace 0"}},
			{"in a collection", newPod("p", ""), [][3]string{{"DELETE", "", ""}},
				[]string{"ADDED 1", "MODIFIED 2 grace 0", "DELETED 2 grace 0"}},
			{"on a node", newPod("p", bound), [][3]string{{"DELETE", "/p", ""}, {"DELETE", "/p", `{"gracePeriodSeconds":0}`}},
				[]string{"ADDED 1", "MODIFIED 2 grace 30", "MODIFIED 2 grace 0", "DELETED 2 grace 0"}},
			{"on a node, by force", newPod("p", bound), [][3]string{{"DELETE", "/p", `{"gracePeriodSeconds":0}`}},
				[]string{"ADDED 1", "MODIFIED 2 grace 0", "DELETED 2 grace 0"}},
			{"done", newPod("p", bound), [][3]string{{"PATCH", "/p/status", `{"status":{"phase":"Succeeded"}}`}, {"DELETE", "/p", ""}},
				[]string{"ADDED 1", "MODIFIED 1", "MODIFIED 2 grace 0", "DELETED 2 grace 0"}},
			{"held", newPod("p", "", "x.io/f"), [][3]string{{"DELETE", "/p", ""}, {"PATCH", "/p", `{"metadata":{"finalizers":null}}`}},
				[]string{"ADDED 1 held", "MODIFIED 2 grace 0 held", "DELETED 2 grace 0 held"}},
			{"held on a node", newPod("p", bound, "x.io/f"),
				[][3]string{{"DELETE", "/p", ""}, {"DELETE", "/p", `{"gracePeriodSeconds":0}`}, {"PATCH", "/p", `{"metadata":{"finalizers":null}}`}},
				[]string{"ADDED 1 held", "MODIFIED 2 grace 30 held", "MODIFIED 2 grace 0 held", "DELETED 2 grace 0 held"}},
		} {
			w := a.watch(pods + "?watch=1&resourceVersion=" + a.must(200, "GET", pods, nil).version())
			a.must(201, "POST", pods, c.pod)
			var last answer
			for _, s := range c.steps {
				var body any
				if s[2] != "" {
					body = s[2]
				}
				last = a.must(200, s[0], pods+s[1], body)
			}
			var got []string
			for range c.want {
				e := w.next()
				got = append(got, story(e))
				if e.Type == "DELETED" && last.body["kind"] == "Pod" {
					assert.Equal(t, e.version(), last.version(), "%s: the answer is the pod as it went", c.name)
					assert.NotEmpty(t, text(last.body, "metadata", "deletionTimestamp"), c.name)
				}
			}
			assert.Equal(t, c.want, got, c.name)
			a.must(404, "GET", pods+"/p", nil)
		}
		version := a.must(201, "POST", pods, newPod("p", "")).version()
		a.must(409, "DELETE", pods+"/p", `{"preconditions":{"resourceVersion":"1"}}`)
		a.must(409, "DELETE", pods+"/p", `{"preconditions":{"uid":"other"}}`)
		assert.Empty(t, text(a.must(200, "GET", pods+"/p", nil).body, "metadata", "deletionTimestamp"))
		a.must(200, "DELETE", pods+"/p", `{"preconditions":{"resourceVersion":"`+version+`"}}`)
		a.must(404, "GET", pods+"/p", nil)
	})
}

// TestPodsDeletedTogether: of many who delete one pod at least one does, and it is
// seen ending once.
func TestPodsDeletedTogether(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		w := a.watch(pods + "?watch=1&resourceVersion=" + a.must(200, "GET", pods, nil).version())
		for range 20 {
			a.must(201, "POST", pods, newPod("p", ""))
			var all sync.WaitGroup
			var deleted atomic.Int32
			for range 6 {
				all.Go(func() {
					if got := a.do("DELETE", pods+"/p", nil); got.code == 200 {
						deleted.Add(1)
					} else {
						assert.Equal(t, 404, got.code, "%s", got.raw)
					}
				})
			}
			all.Wait()
			assert.Positive(t, deleted.Load())
			assert.Equal(t, []string{"ADDED p", "MODIFIED p", "DELETED p"}, w.some(3))
		}
	})
}

// TestADeletionThatWasCutOff: a pod that was seen ending when the store failed, or
// the server died, goes by the next one who touches it, or by itself.
func TestADeletionThatWasCutOff(t *testing.T) {
	for name, finish := range map[string]func(a *api){
		"deleted again": func(a *api) { a.must(200, "DELETE", pods+"/p", nil) },
		"written":       func(a *api) { a.must(200, "PATCH", pods+"/p", `{"metadata":{"labels":{"l":"m"}}}`) },
		"left alone":    func(*api) { time.Sleep(15 * time.Second) },
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restarted=", restarted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := faultinject.Wrap(shared{memstore.New(memstore.Options{})}, nil)
					s := servertest.New(t, over(store))
					a := inProcess(t, s)
					a.must(201, "POST", pods, newPod("p", ""))
					store.SetPlan(func(c faultinject.Call) faultinject.Fault {
						if c.Op == faultinject.OpCommit && c.Writes[0].Value == nil {
							return faultinject.Fault{Err: errors.New("cut off")}
						}
						return faultinject.Fault{}
					})
					a.must(500, "DELETE", pods+"/p", nil)
					if restarted {
						require.NoError(t, s.Shutdown(t.Context()))
						a = inProcess(t, servertest.New(t, over(shared{store})))
					}
					store.SetPlan(nil)
					assert.NotEmpty(t, text(a.must(200, "GET", pods+"/p", nil).body, "metadata", "deletionTimestamp"))
					finish(a)
					a.must(404, "GET", pods+"/p", nil)
				})
			})
		}
	}
}
