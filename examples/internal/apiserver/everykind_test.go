package apiserver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/servertest"
)

// TestDeleteNamespaceWithEveryKind: a namespace with an object of each kind stays as long as a
// finalizer holds the objects; after that, all objects and the namespace are removed.
func TestDeleteNamespaceWithEveryKind(t *testing.T) {
	ctx, s := t.Context(), servertest.New(t)
	client := s.Objects()
	const hold = "sample.example.com/hold"
	types := map[string]*registry.Type{} // by the apiVersion that the client knows, and the kind
	for _, typ := range client.Types() {
		types[meta.GroupVersionKind{Group: typ.Group, Version: typ.HubVersion}.APIVersion()+" "+typ.Kind] = typ
	}
	for doc := range strings.SplitSeq(catalog, "\n---\n") {
		tree, _, err := codec.DecodeYAML([]byte(doc), codec.Limits{})
		require.NoError(t, err)
		obj := meta.NewObject(tree)
		typ := types[obj.APIVersion()+" "+obj.Kind()]
		if typ == nil || !typ.Namespaced && typ.Kind != "Namespace" {
			continue
		}
		if typ.Namespaced {
			obj.Set([]any{hold}, "metadata", "finalizers")
		}
		_, err = client.Create(ctx, typ.GroupResource(), obj)
		require.NoError(t, err, typ.Kind)
	}
	left := func() (list []string) {
		for _, typ := range client.Types() {
			if typ.Namespaced && !typ.Virtual {
				objects, err := client.List(ctx, typ.GroupResource(), "sample")
				require.NoError(t, err)
				if len(objects) > 0 {
					list = append(list, typ.GroupResource().String())
				}
			}
		}
		return list
	}
	namespaces, sample := meta.GroupResource{Resource: "namespaces"}, meta.Key{Name: "sample"}
	all := left()
	for _, typ := range types {
		if typ.Namespaced && !typ.Virtual {
			assert.Contains(t, all, typ.GroupResource().String(), "the catalog has no object of the kind")
		}
	}
	require.NoError(t, client.Delete(ctx, namespaces, sample, registry.DeleteOptions{}))
	s.Settle()
	namespace, err := client.Get(ctx, namespaces, sample)
	require.NoError(t, err)
	assert.Contains(t, string(codec.EncodeJSON(nil, namespace.Tree())), hold, "the status of the namespace names the finalizer")

	for _, typ := range types {
		if !typ.Namespaced || typ.Virtual {
			continue
		}
		objects, err := client.List(ctx, typ.GroupResource(), "sample")
		require.NoError(t, err)
		for _, obj := range objects {
			key := meta.Key{Namespace: "sample", Name: obj.Name()}
			if typ.Kind == "Pod" { // no kubelet reports that the pod ended
				now := int64(0)
				require.NoError(t, client.Delete(ctx, typ.GroupResource(), key, registry.DeleteOptions{GraceSeconds: &now}))
			}
			_, err := client.Update(ctx, typ.GroupResource(), key, "", func(o *meta.Object) error {
				o.Set(without(o.Strings("metadata", "finalizers"), hold), "metadata", "finalizers")
				return nil
			})
			require.True(t, err == nil || meta.IsNotFound(err), err)
		}
	}
	s.Settle()
	assert.Empty(t, left())
	_, err = client.Get(ctx, namespaces, sample)
	assert.True(t, meta.IsNotFound(err), "the namespace is removed: %v", err)
}

// without returns list without word, as JSON.
func without(list []string, word string) []any {
	rest := []any{}
	for _, w := range list {
		if w != word {
			rest = append(rest, w)
		}
	}
	return rest
}
