package ownership_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply/internal/ownership"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
)

// TestBuiltinKindsUsePlans applies an object that uses every field of its kind
// to another object, whose lists have other items in another order.
func TestBuiltinKindsUsePlans(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
	kinds := 0
	for _, k := range builtin.Kinds() {
		kind, err := resource.Compile(k, names.Kubernetes)
		require.NoError(t, err)
		for _, v := range kind.Versions {
			if v.Schema() == nil {
				continue
			}
			kinds++
			live, patch := sampler{salt: 1}.object(v.Schema()), sampler{salt: 2}.object(v.Schema())
			assert.NoError(t, ownership.ComparePlans(v.Schema(), live, patch), v.GVK())
		}
	}
	require.Greater(t, kinds, 15)
}

// sampler makes values that use every field of a schema. Two salts make values
// that share some items of their lists and differ in all else.
type sampler struct {
	salt  int
	above []*schema.Struct // to end where a type holds itself
}

func (x sampler) object(s *schema.Schema) map[string]any {
	obj := x.value(s).(map[string]any)
	obj["apiVersion"], obj["kind"] = "v1", "Kind"
	obj["metadata"] = map[string]any{
		"name": "a", "labels": map[string]any{"a": fmt.Sprint(x.salt), "b": "1"}, "finalizers": []any{fmt.Sprint("f/", x.salt), "f/0"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Kind", "name": "o", "uid": fmt.Sprint("u", x.salt)}},
	}
	return obj
}

func (x sampler) value(s *schema.Schema) any {
	switch {
	case s == nil, s.Wire == schema.Raw, s.Wire == schema.Fields:
		return map[string]any{"any": map[string]any{"thing": int64(x.salt)}}
	case s.IntOrString, s.Wire == schema.IntOrString, s.Wire == schema.Quantity:
		return []any{int64(x.salt), "5"}[x.salt%2]
	case s.Type == schema.Object && s.Struct != nil:
		return x.fields(s.Struct)
	case s.Type == schema.Object:
		return map[string]any{"a": x.value(s.Values), fmt.Sprint(x.salt): x.value(s.Values)}
	case s.Type == schema.Array:
		return x.list(s)
	case s.Type == schema.Integer, s.Type == schema.Number:
		return int64(x.salt)
	case s.Type == schema.Boolean:
		return x.salt%2 == 0
	}
	return fmt.Sprint("v", x.salt)
}

func (x sampler) fields(s *schema.Struct) map[string]any {
	out := map[string]any{}
	if slices.Contains(x.above, s) {
		return out
	}
	x.above = append(slices.Clip(x.above), s)
	for _, f := range s.Fields {
		out[f.Name] = x.value(f.Schema)
	}
	return out
}

// list has the items 1, 2 and 3, or 3, 4 and 1.
func (x sampler) list(s *schema.Schema) []any {
	keys := s.ListKeys
	if len(keys) == 0 && s.PatchMergeKey != "" {
		keys = []string{s.PatchMergeKey}
	}
	var out []any
	for _, n := range [][]int{{1, 2, 3}, {3, 4, 1}}[x.salt-1] {
		if s.Items != nil && s.Items.Type != schema.Object && s.Items.Type != schema.Array {
			out = append(out, sampler{salt: n}.value(s.Items))
			continue
		}
		item := x.value(s.Items)
		for i, name := range keys {
			f := s.Items.Struct.Field(name)
			item.(map[string]any)[name] = sampler{salt: n}.value(f.Schema)
			if i > 0 && f.Schema.Default != nil && n == 1 {
				delete(item.(map[string]any), name)
			}
		}
		out = append(out, item)
	}
	return out
}
