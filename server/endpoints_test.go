package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server/servertest"
)

// endpoint is a sub-resource that writes an item.
type endpoint struct {
	kind, sub  string
	takes      string // first letters of the labels, annotations, finalizers and ownerReferences that go through it
	collection string
	item       map[string]any // in minimal form
}

// endpoints returns those of every built-in kind. What goes through one is what the
// kind declares; an item that may have it is in testdata/minimal.
func endpoints(t *testing.T) (list []endpoint) {
	for _, k := range builtin.Kinds() {
		typ, err := resource.Compile(k, names.Kubernetes)
		require.NoError(t, err)
		for _, sub := range typ.Subresources {
			if sub.Merge == nil || !slices.Contains(sub.Verbs(), "update") {
				continue
			}
			e := endpoint{kind: typ.Kind, sub: sub.Name, collection: collection(typ.Hub), item: minimal(t, typ)}
			for _, f := range compat.CallersMetadata() {
				if slices.Contains(sub.Metadata, f) {
					e.takes += f[:1]
				}
			}
			list = append(list, e)
		}
	}
	return list
}

// collection is the path of the objects of a kind in the namespace default.
func collection(v *resource.Version) string {
	path := "/apis/"
	if v.Group == "" {
		path = "/api/"
	}
	path += v.GVK().APIVersion()
	if v.Namespaced {
		path += "/namespaces/default"
	}
	return path + "/" + v.Plural
}

// minimal is an object of a kind that has little more than it must.
func minimal(t *testing.T, typ *resource.Type) (obj map[string]any) {
	text, err := os.ReadFile("testdata/minimal/" + typ.GroupResource().String() + ".json")
	require.NoError(t, err, "a minimal object of %s, for the tests of its sub-resources", typ.Kind)
	require.NoError(t, json.Unmarshal(text, &obj))
	if obj["metadata"] == nil {
		obj["metadata"] = map[string]any{"name": "x"}
	}
	return obj
}

// boatDefinition is one of a kind with both usual sub-resources.
func boatDefinition(plural, kind string) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".sea.example.com"},
		"spec": map[string]any{
			"group": "sea.example.com", "scope": "Cluster", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				"subresources": map[string]any{"status": map[string]any{}, "scale": map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
			}},
		},
	}
}

// TestMetadataThroughSubresources writes all metadata that callers set through
// every sub-resource of every kind, by every verb: what does not belong there
// stays as it is, what does is changed, and its owner is the one who changed it.
func TestMetadataThroughSubresources(t *testing.T) { synctest.Test(t, metadataThroughSubresources) }

func metadataThroughSubresources(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, boatDefinition("rafts", "Raft"))
	s.Settle()
	raft := map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Raft", "metadata": map[string]any{"name": "x"}, "spec": map[string]any{"replicas": 1}}
	for _, e := range append(endpoints(t),
		endpoint{"Raft", "status", "", "/apis/sea.example.com/v1/rafts", raft}, endpoint{"Raft", "scale", "", "/apis/sea.example.com/v1/rafts", raft}) {
		for _, how := range []string{"PUT", "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"} {
			if e.sub == "finalize" && how != "PUT" || e.kind == "Raft" && strings.Contains(how, "strategic") {
				continue
			}
			item := e.collection + "/" + at(e.item, "metadata", "name").(string)
			a.must(201, "POST", e.collection, e.item)
			s.Settle()
			writeMetadata(a, item+"/"+e.sub, how)
			got := a.must(200, "GET", item, nil)
			taken, owned := metadataOf(got.body, e.sub)
			assert.Equal(t, e.takes, taken, "%s of %s by %s", e.sub, e.kind, how)
			if e.kind != "CertificateSigningRequest" && e.sub != "ephemeralcontainers" && e.sub != "resize" { // whose own rules say who owns what
				assert.Equal(t, e.takes, owned, "owned through %s of %s by %s", e.sub, e.kind, how)
			}
			a.must(200, "PATCH", item, `{"metadata":{"finalizers":null,"ownerReferences":null}}`)
			a.must(200, "DELETE", item, nil)
			s.Settle()
		}
	}
}

// writeMetadata sets all metadata that callers set.
func writeMetadata(a *api, path, how string) {
	a.t.Helper()
	in := map[string]any{
		"labels": map[string]any{"example.com/l": "1"}, "annotations": map[string]any{"example.com/a": "1"}, "finalizers": []any{"example.com/f"},
		"ownerReferences": []any{map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "none", "uid": "00000000-0000-0000-0000-00000000dead"}},
	}
	shown := a.do("GET", strings.TrimSuffix(path, "/finalize"), nil) // finalize cannot be read
	require.Equal(a.t, 200, shown.code, "%s", shown.raw)
	switch how {
	case "PUT":
		maps.Copy(shown.body["metadata"].(map[string]any), in)
		a.must(200, "PUT", path, shown.body)
	case "application/json-patch+json":
		var ops []any
		for f, v := range in {
			ops = append(ops, map[string]any{"op": "add", "path": "/metadata/" + f, "value": v})
		}
		a.must(200, "PATCH", path, ops, "Content-Type", how)
	case "application/apply-patch+yaml":
		in["name"] = at(shown.body, "metadata", "name")
		a.must(200, "PATCH", path+"?fieldManager=m&force=true", map[string]any{"apiVersion": shown.body["apiVersion"], "kind": shown.body["kind"], "metadata": in}, "Content-Type", how)
	default:
		a.must(200, "PATCH", path, map[string]any{"metadata": in}, "Content-Type", how)
	}
}

// metadataOf returns what of the metadata that callers set is there, and what of
// it is owned by writers of a sub-resource.
func metadataOf(obj map[string]any, sub string) (taken, owned string) {
	o := meta.NewObject(obj)
	for _, f := range compat.CallersMetadata() {
		if text := fmt.Sprint(o.Metadata()[f]); strings.Contains(text, "example.com") {
			taken += f[:1]
		}
		if slices.ContainsFunc(o.List("metadata", "managedFields"), func(v any) bool {
			entry := meta.NewObject(v.(map[string]any))
			_, is := entry.Get("fieldsV1", "f:metadata", "f:"+f)
			return is && entry.String("subresource") == sub
		}) {
			owned += f[:1]
		}
	}
	return taken, owned
}

// TestStoredVersions: nobody can make a definition forget which versions its
// objects may be stored in, by any way of writing its status.
func TestStoredVersions(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, boatDefinition("boats", "Boat"))
	s.Settle()
	const item = crdPath + "/boats.sea.example.com"
	stored := func() any { return at(a.must(200, "GET", item, nil).body, "status", "storedVersions") }
	require.Equal(t, []any{"v1"}, stored())
	for _, w := range [][]string{
		{"application/merge-patch+json", `{"status":{"storedVersions":[]}}`},
		{"application/merge-patch+json", `{"status":{"storedVersions":null}}`},
		{"application/merge-patch+json", `{"status":null}`},
		{"application/json-patch+json", `[{"op":"remove","path":"/status/storedVersions"}]`},
		{"application/json-patch+json", `[{"op":"remove","path":"/status"}]`},
		{"application/strategic-merge-patch+json", `{"status":{"storedVersions":[]}}`},
		{"application/apply-patch+yaml", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boats.sea.example.com"},"status":{"storedVersions":[]}}`},
	} {
		for _, sub := range []string{"/status", ""} {
			a.must(200, "PATCH", item+sub+"?fieldManager=m"+map[bool]string{true: "&force=true"}[strings.Contains(w[0], "apply")], w[1], "Content-Type", w[0])
			assert.Equal(t, []any{"v1"}, stored(), "%s %s", sub, w[1])
		}
	}
	got := a.must(200, "GET", item, nil).body
	at(got, "status").(map[string]any)["storedVersions"] = []any{}
	a.must(200, "PUT", item+"/status", got)
	assert.Equal(t, []any{"v1"}, stored())
	a.must(200, "PATCH", item+"/status", `{"status":{"storedVersions":["v0","v1"]}}`)
	assert.Equal(t, []any{"v0", "v1"}, stored(), "who migrates objects tells so here")
}
