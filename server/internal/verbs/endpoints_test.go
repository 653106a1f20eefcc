package verbs_test

import (
	"encoding/json"
	"fmt"
	"maps"
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
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// endpoint is a subresource that writes an item.
type endpoint struct {
	kind, sub  string
	takes      string // initials of labels, annotations, finalizers and ownerReferences, if the subresource writes them
	collection string
	item       map[string]any // minimal item
}

// endpoints returns the subresources of every built-in kind. takes comes from the declaration of the kind; a minimal
// item is in testdata/minimal.
func endpoints(t *testing.T) (list []endpoint) {
	for _, k := range builtin.Kinds() {
		typ, err := resource.Compile(k, names.Kubernetes)
		require.NoError(t, err)
		for _, sub := range typ.Subresources {
			if sub.Merge == nil || !slices.Contains(sub.Verbs(), "update") {
				continue
			}
			e := endpoint{kind: typ.Kind, sub: sub.Name, collection: apitest.CollectionPath(typ.Hub), item: minimal(t, typ)}
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

// minimal returns an object of a kind with little more than its required fields.
func minimal(t *testing.T, typ *resource.Type) (obj map[string]any) {
	text, err := apitest.ReadMinimal(typ.GroupResource().String())
	require.NoError(t, err, "a minimal object of %s, for the tests of its subresources", typ.Kind)
	require.NoError(t, json.Unmarshal(text, &obj))
	if obj["metadata"] == nil {
		obj["metadata"] = map[string]any{"name": "x"}
	}
	return obj
}

// boatDefinition returns a definition with both subresources, status and scale.
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

// TestMetadataThroughSubresources: all metadata that callers can set is written through every subresource of every
// kind, by every verb. Metadata that the subresource does not write stays unchanged, and the writer owns the metadata
// that changes.
func TestMetadataThroughSubresources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, metadataThroughSubresources)
}

func metadataThroughSubresources(t *testing.T) {
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, boatDefinition("rafts", "Raft"))
	s.Settle()
	raft := map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Raft", "metadata": map[string]any{"name": "x"}, "spec": map[string]any{"replicas": 1}}
	for _, e := range append(endpoints(t),
		endpoint{"Raft", "status", "", "/apis/sea.example.com/v1/rafts", raft}, endpoint{"Raft", "scale", "", "/apis/sea.example.com/v1/rafts", raft}) {
		for _, how := range []string{"PUT", "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"} {
			if e.sub == "finalize" && how != "PUT" || e.kind == "Raft" && strings.Contains(how, "strategic") {
				continue
			}
			item := e.collection + "/" + apitest.Nested(e.item, "metadata", "name").(string)
			a.Must(201, "POST", e.collection, e.item)
			s.Settle()
			writeMetadata(a, item+"/"+e.sub, how)
			got := a.Must(200, "GET", item, nil)
			written, owned := metadataOf(got.Body, e.sub)
			assert.Equal(t, e.takes, written, "%s of %s by %s", e.sub, e.kind, how)
			if e.kind != "CertificateSigningRequest" && e.sub != "ephemeralcontainers" && e.sub != "resize" { // these have special ownership rules
				assert.Equal(t, e.takes, owned, "owned through %s of %s by %s", e.sub, e.kind, how)
			}
			a.Must(200, "PATCH", item, `{"metadata":{"finalizers":null,"ownerReferences":null}}`)
			a.Must(200, "DELETE", item, nil)
			s.Settle()
		}
	}
}

// writeMetadata sets all metadata that callers can set.
func writeMetadata(a *apitest.Client, path, how string) {
	a.T.Helper()
	in := map[string]any{
		"labels": map[string]any{"example.com/l": "1"}, "annotations": map[string]any{"example.com/a": "1"}, "finalizers": []any{"example.com/f"},
		"ownerReferences": []any{map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "none", "uid": "00000000-0000-0000-0000-00000000dead"}},
	}
	shown := a.Do("GET", strings.TrimSuffix(path, "/finalize"), nil) // finalize cannot be read
	require.Equal(a.T, 200, shown.Code, "%s", shown.Raw)
	switch how {
	case "PUT":
		maps.Copy(shown.Body["metadata"].(map[string]any), in)
		a.Must(200, "PUT", path, shown.Body)
	case "application/json-patch+json":
		var ops []any
		for f, v := range in {
			ops = append(ops, map[string]any{"op": "add", "path": "/metadata/" + f, "value": v})
		}
		a.Must(200, "PATCH", path, ops, "Content-Type", how)
	case "application/apply-patch+yaml":
		in["name"] = apitest.Nested(shown.Body, "metadata", "name")
		a.Must(200, "PATCH", path+"?fieldManager=m&force=true", map[string]any{"apiVersion": shown.Body["apiVersion"], "kind": shown.Body["kind"], "metadata": in}, "Content-Type", how)
	default:
		a.Must(200, "PATCH", path, map[string]any{"metadata": in}, "Content-Type", how)
	}
}

// metadataOf returns the metadata that callers have set, and the part of it that writers of a subresource own.
func metadataOf(obj map[string]any, sub string) (written, owned string) {
	o := meta.NewObject(obj)
	for _, f := range compat.CallersMetadata() {
		if text := fmt.Sprint(o.Metadata()[f]); strings.Contains(text, "example.com") {
			written += f[:1]
		}
		if slices.ContainsFunc(o.List("metadata", "managedFields"), func(v any) bool {
			entry := meta.NewObject(v.(map[string]any))
			_, is := entry.Get("fieldsV1", "f:metadata", "f:"+f)
			return is && entry.String("subresource") == sub
		}) {
			owned += f[:1]
		}
	}
	return written, owned
}

// TestStoredVersionsOfDefinitionAreKept: no write of the status of a definition can remove a version in which objects
// may be stored.
func TestStoredVersionsOfDefinitionAreKept(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, boatDefinition("boats", "Boat"))
	s.Settle()
	const item = apitest.DefinitionsPath + "/boats.sea.example.com"
	stored := func() any { return apitest.Nested(a.Must(200, "GET", item, nil).Body, "status", "storedVersions") }
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
			a.Must(200, "PATCH", item+sub+"?fieldManager=m"+map[bool]string{true: "&force=true"}[strings.Contains(w[0], "apply")], w[1], "Content-Type", w[0])
			assert.Equal(t, []any{"v1"}, stored(), "%s %s", sub, w[1])
		}
	}
	got := a.Must(200, "GET", item, nil).Body
	apitest.Nested(got, "status").(map[string]any)["storedVersions"] = []any{}
	a.Must(200, "PUT", item+"/status", got)
	assert.Equal(t, []any{"v1"}, stored())
	a.Must(200, "PATCH", item+"/status", `{"status":{"storedVersions":["v0","v1"]}}`)
	assert.Equal(t, []any{"v0", "v1"}, stored(), "storedVersions is shortened after a migration")
}
