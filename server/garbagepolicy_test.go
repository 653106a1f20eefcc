package server_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestGarbagePolicy: what is collected leaves what it owns if its finalizers say so, and
// takes it along otherwise, whatever a delete that names no policy means for its kind.
func TestGarbagePolicy(t *testing.T) {
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
				o.uids["rc"] = text(o.must(201, "POST", controllers, map[string]any{
					"metadata": map[string]any{"name": "rc", "ownerReferences": []any{o.owner("a")}},
					"spec": map[string]any{"replicas": 0, "selector": map[string]any{"app": "x"}, "template": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{"app": "x"}},
						"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
					}},
				}).body, "metadata", "uid")
				o.must(200, "PATCH", controllers+"/rc", `{"metadata":{"finalizers":[`+c.finalizers+`]}}`)
				owner := o.owner("rc")
				owner["kind"] = "ReplicationController"
				o.add("pod")
				o.own(configMaps+"/pod", owner)
				o.must(200, "DELETE", configMaps+"/a", nil)
				assert.Equal(t, c.want, o.left())
				assert.Empty(t, o.must(200, "GET", controllers, nil).names())
			})
		})
	}
}
