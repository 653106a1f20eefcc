package apply_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// random generates objects of a schema from few names and values, so that two objects often
// share fields and list items.
type random struct {
	*rand.Rand
	fill float64 // probability of a field
}

func newRandom(seed uint64) random {
	return random{rand.New(rand.NewPCG(seed, 3)), 0.3}
}

func (r random) word() string { return string(rune('a' + r.IntN(4))) }

func (r random) value(s *schema.Schema, depth int) any {
	switch {
	case s == nil:
		return map[string]any{r.word(): r.word(), "l": []any{r.word()}}
	case s.IntOrString, s.Wire == schema.IntOrString:
		return []any{int64(r.IntN(3)), r.word()}[r.IntN(2)]
	case s.Type == schema.Boolean:
		return r.IntN(2) == 0
	case s.Type == schema.Integer:
		return int64(r.IntN(3))
	case s.Type == schema.Number:
		return []any{int64(r.IntN(3)), 1.5}[r.IntN(2)]
	case s.Type == schema.Array:
		return r.list(s, depth)
	case s.Type == schema.Object || s.Struct != nil:
		return r.object(s, depth)
	}
	return r.word()
}

func (r random) object(s *schema.Schema, depth int) map[string]any {
	m := map[string]any{}
	switch {
	case depth == 0:
	case s.Struct == nil:
		for range r.IntN(3) {
			m[r.word()] = r.value(s.Values, depth-1)
		}
	default:
		for _, f := range s.Struct.Fields {
			if r.Float64() < r.fill {
				m[f.Name] = r.value(f.Schema, depth-1)
			}
		}
	}
	return m
}

// list returns a list whose items have unique keys.
func (r random) list(s *schema.Schema, depth int) []any {
	keys := s.ListKeys
	if s.PatchMergeKey != "" {
		keys = []string{s.PatchMergeKey}
	}
	l, seen := []any{}, map[string]bool{}
	for range r.IntN(5) {
		item, id := r.value(s.Items, depth-1), ""
		if obj, ok := item.(map[string]any); ok {
			for _, k := range keys {
				obj[k] = r.value(s.Items.Struct.Field(k).Schema, 1)
				id += fmt.Sprint(obj[k], "/")
			}
		} else {
			id = fmt.Sprint(item)
		}
		if id == "" || !seen[id] {
			l = append(l, item)
		}
		seen[id] = true
	}
	return l
}

// changed returns a copy of an object with some fields of another.
func (r random) changed(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range a {
		if r.IntN(4) > 0 {
			out[k] = v
		}
	}
	for k, v := range b {
		x, ok := out[k].(map[string]any)
		y, both := v.(map[string]any)
		switch {
		case ok && both:
			out[k] = r.changed(x, y)
		case r.IntN(2) == 0:
			out[k] = v
		}
	}
	return out
}

// schemas returns the schemas of three built-in kinds, and of a custom resource with each list
// and map type.
func schemas(t *testing.T) map[string]*schema.Schema {
	kinds := []*registry.Kind{registry.FromCRD([]byte(widgets))}
	kinds = append(kinds, builtin.Kinds()...)
	found := map[string]*schema.Schema{}
	for _, k := range kinds {
		kind, err := resource.Compile(k, names.Kubernetes)
		require.NoError(t, err)
		for _, v := range kind.Versions {
			switch v.GVK().Kind {
			case "Deployment", "Pod", "Service", "Widget":
				found[v.GVK().Kind] = v.Schema()
			}
		}
	}
	require.Len(t, found, 4)
	return found
}

const widgets = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true,
"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
	"set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
	"map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"], "items": {"type": "object", "required": ["k", "p"],
		"properties": {"k": {"type": "string"}, "p": {"type": "string"}, "v": {"type": "integer"}}}},
	"list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}}}}},
	"atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}},
	"nested": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "number"}}},
	"either": {"x-kubernetes-int-or-string": true},
	"any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
}}}}}}]}}`

// TestPatchesReachTheModifiedObject checks for generated objects that applying a created
// patch gives the modified object.
func TestPatchesReachTheModifiedObject(t *testing.T) {
	rounds := uint64(600)
	if testing.Short() {
		rounds = 50
	}
	for name, s := range schemas(t) {
		for seed := range rounds {
			r := newRandom(seed)
			a := r.object(s, 7)
			b := r.changed(a, r.object(s, 7))
			checkPatches(t, fmt.Sprintf("%s, seed %d", name, seed), a, b, s)
		}
	}
}

func checkPatches(t *testing.T, name string, a, b map[string]any, s *schema.Schema) {
	t.Helper()
	beforeA, beforeB := meta.Clone(a), meta.Clone(b)
	merge := apply.CreateMergePatch(a, b)
	requireSame(t, b, apply.MergePatch(a, merge), "%s: merge patch %s of %s", name, text(merge), text(a))

	jsonPatch := apply.CreateJSONPatch(a, b)
	out, err := apply.JSONPatch(a, jsonPatch, apply.Limits{})
	require.NoError(t, err, name)
	requireSame(t, b, out, "%s: JSON patch %s of %s", name, jsonPatch, text(a))

	strategic, err := apply.CreateStrategicMerge(a, b, s)
	require.NoError(t, err, "%s: %s to %s", name, text(a), text(b))
	out, err = apply.StrategicMerge(a, strategic, s)
	require.NoError(t, err, "%s: strategic patch %s of %s", name, text(strategic), text(a))
	requireSame(t, b, out, "%s: strategic patch %s of %s", name, text(strategic), text(a))

	if meta.Equal(a, b) {
		require.Empty(t, merge, name)
		require.Empty(t, strategic, name)
		require.Equal(t, "[]", string(jsonPatch), name)
	}
	require.Equal(t, meta.Equal(a, b), len(apply.Diff(a, b, s)) == 0, "%s: %s to %s", name, text(a), text(b))
	require.True(t, meta.Equal(beforeA, a) && meta.Equal(beforeB, b), "%s: an argument has changed", name)
}

func requireSame(t *testing.T, want, got any, format string, args ...any) {
	t.Helper()
	if !meta.Equal(want, got) {
		require.Fail(t, "the objects differ", "%s\nwant %s\ngot  %s", fmt.Sprintf(format, args...), text(want), text(got))
	}
}
