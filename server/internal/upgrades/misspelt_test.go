package upgrades_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

type shelf struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Boards []board           `json:"boards,omitempty"`
		Colors map[string]string `json:"colors,omitempty"`
		Height int               `json:"height,omitempty"`
	} `json:"spec,omitzero"`
	Status struct {
		Full bool `json:"full,omitempty"`
	} `json:"status,omitzero"`
}

type board struct {
	Width int `json:"width,omitempty"`
}

func shelves(b *server.Builder) {
	b.Register(registry.Of(registry.Definition[shelf]{Group: "example.com", Version: "v1", Kind: "Shelf", Plural: "shelves", Status: true, Scope: registry.Cluster}))
}

const boxes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: boxes, singular: box, kind: Box, listKind: BoxList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              height: {type: integer}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// TestMisspeltFieldsAreErrors: misspelt fields in parts of the server are errors, for kinds of
// every form.
func TestMisspeltFieldsAreErrors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := servertest.New(t, shelves, func(b *server.Builder) { b.Register(registry.FromCRD([]byte(boxes))) }).Objects()
	group := func(name string) meta.GroupResource { return meta.GroupResource{Group: "example.com", Resource: name} }
	for _, w := range []struct {
		of   meta.GroupResource
		key  meta.Key
		set  any
		path []string
		says string // empty: it is no error
	}{
		{group("shelves"), meta.Key{Name: "a"}, 2, []string{"spec", "heigth"}, `unknown field "spec.heigth"; did you mean "height"?`},
		{group("shelves"), meta.Key{Name: "a"}, 2, []string{"spek", "height"}, `unknown field "spek"; did you mean "spec"?`},
		{group("shelves"), meta.Key{Name: "a"}, "x", []string{"metadata", "label"}, `unknown field "metadata.label"; did you mean "labels"?`},
		{group("shelves"), meta.Key{Name: "a"}, []any{map[string]any{}, map[string]any{"widht": int64(1)}}, []string{"spec", "boards"}, `unknown field "spec.boards[1].widht"; did you mean "width"?`},
		{group("shelves"), meta.Key{Name: "a"}, 1, []string{"spec", "nothingLikeIt"}, `unknown field "spec.nothingLikeIt"`},
		{group("shelves"), meta.Key{Name: "a"}, "x", []string{"spec", "colors", "anything"}, ""},
		{group("boxes"), meta.Key{Name: "a"}, 2, []string{"spec", "heigth"}, `unknown field "spec.heigth"; did you mean "height"?`},
		{group("boxes"), meta.Key{Name: "a"}, "x", []string{"metadata", "label"}, `unknown field "metadata.label"; did you mean "labels"?`},
		{group("boxes"), meta.Key{Name: "a"}, "x", []string{"metadat", "labels"}, `unknown field "metadat"; did you mean "metadata"?`},
		{group("boxes"), meta.Key{Name: "a"}, "x", []string{"spec", "free", "anything"}, ""},
		{meta.GroupResource{Resource: "configmaps"}, meta.Key{Namespace: "default", Name: "a"}, "x", []string{"dat", "a"}, `unknown field "dat"; did you mean "data"?`},
		{meta.GroupResource{Resource: "configmaps"}, meta.Key{Namespace: "default", Name: "a"}, "x", []string{"data", "a"}, ""},
	} {
		obj := meta.NewObject(map[string]any{})
		obj.SetName(w.key.Name)
		obj.SetNamespace(w.key.Namespace)
		if w.of.Resource == "boxes" {
			obj.SetGVK(meta.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Box"})
		}
		bad := obj.Clone()
		bad.Set(w.set, w.path...)
		_, createErr := c.Create(ctx, w.of, bad)
		if w.says != "" {
			_, err := c.Create(ctx, w.of, obj)
			require.NoError(t, err)
		}
		_, updateErr := c.Update(ctx, w.of, w.key, "", func(o *meta.Object) error {
			o.Set(w.set, w.path...)
			return nil
		})
		stored, err := c.Get(ctx, w.of, w.key)
		require.NoError(t, err)
		_, there := stored.Get(w.path...)
		for _, err := range []error{createErr, updateErr} {
			if w.says == "" {
				assert.NoError(t, err, w.path)
				assert.True(t, there, w.path)
				continue
			}
			assert.ErrorContains(t, err, w.says)
			assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
			assert.False(t, there, w.path)
		}
		require.NoError(t, c.Delete(ctx, w.of, w.key, registry.DeleteOptions{}))
	}
	_, err := c.Create(ctx, group("shelves"), meta.NewObject(map[string]any{"metadata": map[string]any{"name": "s"}}))
	require.NoError(t, err)
	_, err = c.Update(ctx, group("shelves"), meta.Key{Name: "s"}, "status", func(o *meta.Object) error {
		o.Set(true, "status", "ful")
		return nil
	})
	assert.ErrorContains(t, err, `unknown field "status.ful"; did you mean "full"?`)
}

// TestFieldsOfAnOlderKind: stored fields that the kind no longer has are hidden, and are not reported as
// unknown fields.
func TestFieldsOfAnOlderKind(t *testing.T) {
	t.Parallel()
	type shelf struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Boards []struct {
				Width int    `json:"width,omitempty"`
				Wood  string `json:"wood,omitempty"`
			} `json:"boards,omitempty"`
			Doors int `json:"doors,omitempty"`
		} `json:"spec,omitzero"`
	}
	ctx := t.Context()
	store := memstore.New(memstore.Options{})
	older := servertest.New(t, apitest.WithStorage(store), func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[shelf]{Group: "example.com", Version: "v1", Kind: "Shelf", Plural: "shelves", Scope: registry.Cluster}))
	})
	of, key := meta.GroupResource{Group: "example.com", Resource: "shelves"}, meta.Key{Name: "a"}
	_, err := older.Objects().Create(ctx, of, meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{
		"doors": int64(2), "boards": []any{map[string]any{"width": int64(1)}, map[string]any{"wood": "oak"}},
	}}))
	require.NoError(t, err)
	c := servertest.New(t, keeps, apitest.WithStorage(store), shelves).Objects()
	change := func(field string) error {
		_, err := c.Update(ctx, of, key, "", func(o *meta.Object) error {
			boards, _ := o.Get("spec", "boards")
			o.Set(boards.([]any)[1:], "spec", "boards")
			o.Set(3, "spec", field)
			return nil
		})
		return err
	}
	err = change("heigth")
	assert.ErrorContains(t, err, "heigth")
	assert.NotContains(t, err.Error(), "doors")
	require.NoError(t, change("height"))
	got, err := c.Get(ctx, of, key)
	require.NoError(t, err)
	spec, _ := got.Get("spec")
	assert.Equal(t, map[string]any{"height": int64(3), "boards": []any{map[string]any{}}}, spec)
}
