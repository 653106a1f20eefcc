package verbs_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/storage/memstore"
)

// TestGarbagePolicy: the dependents of a collected object are orphaned if its finalizers require that, and deleted
// otherwise. The default policy of its kind does not apply.
func TestGarbagePolicy(t *testing.T) {
	t.Parallel()
	const controllers = "/api/v1/namespaces/default/replicationcontrollers"
	for name, c := range map[string]struct {
		finalizers string
		want       string
	}{
		"nothing is said": {``, ""},
		"orphan":          {`"orphan"`, "pod"},
		"foreground":      {`"foregroundDeletion"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwned(t, nil)
				o.add("a")
				o.uids["rc"] = apitest.NestedString(o.Must(201, "POST", controllers, map[string]any{
					"metadata": map[string]any{"name": "rc", "ownerReferences": []any{o.owner("a")}},
					"spec": map[string]any{"replicas": 0, "selector": map[string]any{"app": "x"}, "template": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{"app": "x"}},
						"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
					}},
				}).Body, "metadata", "uid")
				o.Must(200, "PATCH", controllers+"/rc", `{"metadata":{"finalizers":[`+c.finalizers+`]}}`)
				owner := o.owner("rc")
				owner["kind"] = "ReplicationController"
				o.add("pod")
				o.own(apitest.ConfigMapsPath+"/pod", owner)
				o.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
				assert.Equal(t, c.want, o.left())
				assert.Empty(t, o.Must(200, "GET", controllers, nil).Names())
			})
		})
	}
}

// TestNamespaceDeletionDeletesPodsFirst: other objects are deleted after the pods, and the status shows what the
// namespace waits for.
func TestNamespaceDeletionDeletesPodsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, nil)
		const ns = "/api/v1/namespaces/ends"
		o.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "ends"}})
		o.Settle() // until pods can be created
		o.Must(201, "POST", ns+"/configmaps", apitest.NewConfigMap("content"))
		o.Must(201, "POST", ns+"/pods", map[string]any{
			"metadata": map[string]any{"name": "held", "finalizers": []any{"example.com/hold"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
		})
		o.Must(200, "DELETE", ns, nil)
		o.Settle()
		o.Must(200, "GET", ns+"/configmaps/content", nil)
		assert.NotEmpty(t, apitest.NestedString(o.Must(200, "GET", ns+"/pods/held", nil).Body, "metadata", "deletionTimestamp"))
		got := map[string]string{}
		for _, c := range apitest.Nested(o.Must(200, "GET", ns, nil).Body, "status", "conditions").([]any) {
			got[apitest.NestedString(c, "type")+" "+apitest.NestedString(c, "status")] = apitest.NestedString(c, "message")
		}
		assert.Equal(t, map[string]string{
			"NamespaceDeletionDiscoveryFailure False": "All resources successfully discovered",
			"NamespaceDeletionContentFailure False":   "All content successfully deleted, may be waiting on finalization",
			"NamespaceContentRemaining True":          "Some resources are remaining: [pods has 1 resource instances]",
			"NamespaceFinalizersRemaining True":       "Some content in the namespace has finalizers remaining: [example.com/hold in 1 resource instances]",
		}, got)
		o.Must(200, "PATCH", ns+"/pods/held", `{"metadata":{"finalizers":null}}`)
		o.Settle()
		o.Must(404, "GET", ns, nil)
		assert.Empty(t, o.Must(200, "GET", "/api/v1/configmaps", nil).Names())
	})
}

// TestGarbageOfMisspeltKinds: the kind of an owner may be in lower case. No object has the kind of a list. A kind in
// any other spelling is not served.
func TestGarbageOfMisspeltKinds(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct{ there, gone string }{
		"configmap":     {"x y", ""},
		"ConfigMapList": {"y", ""},
		"List":          {"y", ""},
		"configmapList": {"x y", "x"},
		"configmaplist": {"x y", "x"},
		"CONFIGMAP":     {"x y", "x"},
		"configMap":     {"x y", "x"},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwned(t, memstore.New(memstore.Options{}))
				o.add("x")
				o.add("y")
				owner := o.owner("y")
				owner["kind"] = kind
				o.own(apitest.ConfigMapsPath+"/x", owner)
				o.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "cluster"}})
				o.own("/api/v1/namespaces/cluster", map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "name": "y", "uid": "u"})
				assert.Equal(t, c.there, o.left())
				o.Must(200, "GET", "/api/v1/namespaces/cluster", nil)
				owner["uid"] = "00000000-0000-0000-0000-00000000beef"
				if c.there == "x y" {
					o.own(apitest.ConfigMapsPath+"/x", owner)
				}
				o.Must(200, "DELETE", apitest.ConfigMapsPath+"/y", nil)
				assert.Equal(t, c.gone, o.left())
			})
		})
	}
}
