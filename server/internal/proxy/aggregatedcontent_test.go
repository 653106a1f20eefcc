package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

// yard is a minimal extension server with berths in the namespace port.
type yard struct {
	t     *testing.T
	verbs string // verbs of its only resource
	one   bool   // it rejects deletecollection, whatever its verbs are

	mu     sync.Mutex // guards the fields below
	berths map[string]map[string]any
	asked  []string
}

func (y *yard) put(name string, finalizers ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.berths[name] = map[string]any{"name": name, "namespace": "port", "uid": "uid-" + name, "finalizers": finalizers}
}

func (y *yard) left() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.berths)
}

func (y *yard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const berths = berthAPI + "/namespaces/port/berths"
	y.mu.Lock()
	defer y.mu.Unlock()
	name, one := strings.CutPrefix(r.URL.Path, berths+"/")
	switch {
	case r.URL.Path == berthAPI:
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"harbor.example.com/v1","resources":[
			{"name":"berths","namespaced":true,"kind":"Berth","verbs":[%s]},{"name":"seas","kind":"Sea","verbs":["list","delete","deletecollection"]},
			{"name":"views","namespaced":true,"kind":"View","verbs":["list"]}]}`, y.verbs)
	case r.Method == http.MethodGet && r.URL.Path == berths:
		items := []any{}
		for _, b := range y.berths {
			items = append(items, map[string]any{"metadata": b})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PartialObjectMetadataList", "items": items})
	case r.Method == http.MethodDelete && y.one && !one:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete && (one || r.URL.Path == berths):
		y.asked = append(y.asked, r.URL.Path)
		var options struct{ Preconditions struct{ UID string } }
		assert.NoError(y.t, json.NewDecoder(r.Body).Decode(&options))
		for key, b := range y.berths {
			if one && (key != name || !assert.Equal(y.t, b["uid"], options.Preconditions.UID)) {
				continue
			}
			if b["deletionTimestamp"] = "2026-01-01T00:00:00Z"; len(b["finalizers"].([]any)) == 0 {
				delete(y.berths, key)
			}
		}
		fmt.Fprint(w, "{}")
	default:
		http.NotFound(w, r)
	}
}

// TestNamespaceDeletionEmptiesExtensionServers: the objects of extension servers in a namespace are deleted before
// the namespace. As long as their resources are unknown, the conditions say so.
func TestNamespaceDeletionEmptiesExtensionServers(t *testing.T) {
	t.Parallel()
	for verbs, deletes := range map[string][]string{
		`"list","delete"`:                    {"/one", "/two"},
		`"list","delete","deletecollection"`: {""},
	} {
		t.Run(verbs, func(t *testing.T) {
			t.Parallel()
			h := newHarbor(t)
			y := &yard{t: t, verbs: verbs, berths: map[string]map[string]any{}}
			h.leads(server.Endpoint{Handler: y})
			h.register()
			const port, held = "/api/v1/namespaces/port", "/api/v1/namespaces/port/configmaps/held"
			h.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"port"}}`)
			h.Must(201, "POST", port+"/configmaps", `{"metadata":{"name":"held","finalizers":["example.com/a"]}}`)
			y.put("one")
			y.put("two", "example.com/hold")
			h.leads(server.Endpoint{})
			h.Must(503, "GET", berths, nil) // triggers a probe
			h.settle()
			h.Must(200, "DELETE", port, nil)
			h.settle()
			conditions := h.conditions(port)
			assert.Contains(t, conditions["NamespaceDeletionDiscoveryFailure True DiscoveryFailed"], "harbor.example.com/v1")
			assert.Equal(t, 2, y.left(), "the content is unknown, so nothing may be deleted")

			h.leads(server.Endpoint{Handler: y})
			h.Must(503, "GET", berths, nil)
			h.settle() // also deletes the namespace
			assert.Equal(t, 1, y.left())
			for _, path := range deletes {
				assert.Contains(t, y.asked, berthAPI+"/namespaces/port/berths"+path)
			}
			assert.Len(t, y.asked, len(deletes))
			h.Must(200, "PATCH", held, `{"metadata":{"finalizers":null}}`)
			h.settle()
			conditions = h.conditions(port)
			assert.Contains(t, conditions["NamespaceDeletionDiscoveryFailure False ResourcesDiscovered"], "All resources")
			assert.Contains(t, conditions["NamespaceContentRemaining True SomeResourcesRemain"], "berths.harbor.example.com has 1 resource instances")
			assert.Contains(t, conditions["NamespaceFinalizersRemaining True SomeFinalizersRemain"], "example.com/hold in 1 resource instances")
		})
	}
}

// conditions returns the messages of the conditions of an object.
func (h *harbor) conditions(path string) map[string]string {
	got := map[string]string{}
	list, _ := apitest.Nested(h.Must(200, "GET", path, nil).Body, "status", "conditions").([]any)
	for _, c := range list {
		got[apitest.NestedString(c, "type")+" "+apitest.NestedString(c, "status")+" "+apitest.NestedString(c, "reason")] = apitest.NestedString(c, "message")
	}
	return got
}

// TestNamespaceWithoutExtensionObjectsIsDeleted: a namespace is deleted if extension servers have no objects in it.
func TestNamespaceWithoutExtensionObjectsIsDeleted(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	y := &yard{t: t, verbs: `"list","deletecollection"`, berths: map[string]map[string]any{}}
	h.leads(server.Endpoint{Handler: y})
	h.register()
	h.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"port"}}`)
	y.put("one")
	h.Must(200, "DELETE", "/api/v1/namespaces/port", nil)
	h.settle()
	h.Must(404, "GET", "/api/v1/namespaces/port", nil)
	assert.Zero(t, y.left())
}

// TestNamespaceDeletionWithoutDeleteCollection: a namespace is emptied even if an extension server announces
// deletecollection but does not support it.
func TestNamespaceDeletionWithoutDeleteCollection(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	y := &yard{t: t, verbs: `"list","delete","deletecollection"`, one: true, berths: map[string]map[string]any{}}
	h.leads(server.Endpoint{Handler: y})
	h.register()
	h.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"port"}}`)
	y.put("one")
	h.Must(200, "DELETE", "/api/v1/namespaces/port", nil)
	h.settle()
	h.Must(404, "GET", "/api/v1/namespaces/port", nil)
	assert.Zero(t, y.left())
}

// TestOwnerOnExtensionServerKeepsDependents: the dependents of an object of an extension server are kept, even if
// this server has stored objects of that kind before.
func TestOwnerOnExtensionServerKeepsDependents(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	h.front.InstallCRDs(widgetFiles())
	h.settle()
	h.leads(server.Endpoint{Handler: http.NotFoundHandler()})
	h.Must(200, "PATCH", apiService+"/v1.example.com", `{"metadata":{"labels":null},"spec":{"service":{"namespace":"harbor","name":"berths"},"insecureSkipTLSVerify":true}}`)
	h.Must(201, "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"owned","ownerReferences":[
		{"apiVersion":"example.com/v1","kind":"Widget","name":"w","uid":"00000000-0000-0000-0000-00000000beef"}]}}`)
	h.settle()
	h.Must(200, "GET", "/api/v1/namespaces/default/configmaps/owned", nil)
	h.Must(200, "DELETE", apiService+"/v1.example.com", nil)
	h.settle()
	h.Must(404, "GET", "/api/v1/namespaces/default/configmaps/owned", nil)
}
