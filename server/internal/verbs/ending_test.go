package verbs_test

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

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

const pods = "/api/v1/namespaces/default/pods"

// newPod returns the body of a pod. more is added to its spec.
func newPod(name, more string, finalizers ...string) string {
	list := "[]"
	if len(finalizers) > 0 {
		list = `["` + strings.Join(finalizers, `","`) + `"]`
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"finalizers":%s},"spec":{%s"containers":[{"name":"c","image":"i"}]}}`, name, list, more)
}

// story describes an event of a pod: its type, generation, grace period if the pod is being deleted, and whether a
// finalizer holds it.
func story(e apitest.Event) string {
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

// TestImmediatePodDeletionSendsModifiedThenDeleted: if a pod is deleted without grace period, watches see MODIFIED
// with a deletionTimestamp and then DELETED, whichever request deletes it.
func TestImmediatePodDeletionSendsModifiedThenDeleted(t *testing.T) {
	t.Parallel()
	const bound = `"nodeName":"n",`
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
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
			w := a.Watch(pods + "?watch=1&resourceVersion=" + a.Must(200, "GET", pods, nil).ResourceVersion())
			a.Must(201, "POST", pods, c.pod)
			var last apitest.Response
			for _, s := range c.steps {
				var body any
				if s[2] != "" {
					body = s[2]
				}
				last = a.Must(200, s[0], pods+s[1], body)
			}
			var got []string
			for range c.want {
				e := w.Next()
				got = append(got, story(e))
				if e.Type == "DELETED" && last.Body["kind"] == "Pod" {
					assert.Equal(t, e.ResourceVersion(), last.ResourceVersion(), "%s: the answer is the pod as it went", c.name)
					assert.NotEmpty(t, apitest.NestedString(last.Body, "metadata", "deletionTimestamp"), c.name)
				}
			}
			assert.Equal(t, c.want, got, c.name)
			a.Must(404, "GET", pods+"/p", nil)
		}
		version := a.Must(201, "POST", pods, newPod("p", "")).ResourceVersion()
		a.Must(409, "DELETE", pods+"/p", `{"preconditions":{"resourceVersion":"1"}}`)
		a.Must(409, "DELETE", pods+"/p", `{"preconditions":{"uid":"other"}}`)
		assert.Empty(t, apitest.NestedString(a.Must(200, "GET", pods+"/p", nil).Body, "metadata", "deletionTimestamp"))
		a.Must(200, "DELETE", pods+"/p", `{"preconditions":{"resourceVersion":"`+version+`"}}`)
		a.Must(404, "GET", pods+"/p", nil)
	})
}

// TestPodDeletedConcurrently: of many concurrent deletions of a pod, at least one succeeds, and watches see its last
// state once.
func TestPodDeletedConcurrently(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		w := a.Watch(pods + "?watch=1&resourceVersion=" + a.Must(200, "GET", pods, nil).ResourceVersion())
		for range 20 {
			a.Must(201, "POST", pods, newPod("p", ""))
			var all sync.WaitGroup
			var deleted atomic.Int32
			for range 6 {
				all.Go(func() {
					if got := a.Do("DELETE", pods+"/p", nil); got.Code == 200 {
						deleted.Add(1)
					} else {
						assert.Equal(t, 404, got.Code, "%s", got.Raw)
					}
				})
			}
			all.Wait()
			assert.Positive(t, deleted.Load())
			assert.Equal(t, []string{"ADDED p", "MODIFIED p", "DELETED p"}, w.NextN(3))
		}
	})
}

// TestInterruptedPodDeletionCompletes: if the deletion of a pod was interrupted after the MODIFIED event, because the
// store failed or the server was killed, the next request for the pod or the server itself completes it.
func TestInterruptedPodDeletionCompletes(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(a *apitest.Client){
		"deleted again": func(a *apitest.Client) { a.Must(200, "DELETE", pods+"/p", nil) },
		"written":       func(a *apitest.Client) { a.Must(200, "PATCH", pods+"/p", `{"metadata":{"labels":{"l":"m"}}}`) },
		"left alone":    func(*apitest.Client) { time.Sleep(15 * time.Second) },
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restarted=", restarted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := faultinject.Wrap(apitest.KeepOpen{Backend: memstore.New(memstore.Options{})}, nil)
					s := servertest.New(t, apitest.WithStorage(store))
					a := apitest.InProcess(t, s)
					a.Must(201, "POST", pods, newPod("p", ""))
					store.SetPlan(func(c faultinject.Call) faultinject.Fault {
						if c.Op == faultinject.OpCommit && c.Writes[0].Value == nil {
							return faultinject.Fault{Err: errors.New("cut off")}
						}
						return faultinject.Fault{}
					})
					a.Must(500, "DELETE", pods+"/p", nil)
					if restarted {
						require.NoError(t, s.Shutdown(t.Context()))
						a = apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store})))
					}
					store.SetPlan(nil)
					assert.NotEmpty(t, apitest.NestedString(a.Must(200, "GET", pods+"/p", nil).Body, "metadata", "deletionTimestamp"))
					finish(a)
					a.Must(404, "GET", pods+"/p", nil)
				})
			})
		}
	}
}
