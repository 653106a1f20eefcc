// Package kindtest takes objects through what a kind does with them, for the
// tests of built-in kinds.
package kindtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// Kind is a compiled kind under test.
type Kind struct{ *registry.Version }

// Of returns the kind of that name.
func Of(t *testing.T, p names.Profile, kinds []*registry.Kind, kind string) Kind {
	t.Helper()
	for _, k := range kinds {
		if k.Kind == kind {
			compiled, err := k.Compile(p)
			require.NoError(t, err)
			return Kind{compiled.Storage}
		}
	}
	require.Fail(t, "no such kind", kind)
	return Kind{}
}

// Object reads an object; apiVersion, kind and a name are filled in.
func (k Kind) Object(t *testing.T, body string) *meta.Object {
	t.Helper()
	tree, _, err := codec.DecodeJSON([]byte(body), codec.Limits{})
	require.NoError(t, err, body)
	obj := meta.NewObject(tree)
	obj.SetGVK(k.GVK())
	if obj.Name() == "" {
		obj.SetName("a")
	}
	if k.Namespaced && obj.Namespace() == "" {
		obj.SetNamespace("ns")
	}
	_, faults := k.Conform(obj)
	require.Empty(t, faults, body)
	return obj
}

// Create takes a body through a create. It returns the object and its causes as
// reason:field.
func (k Kind) Create(t *testing.T, body string) (*meta.Object, []string) {
	t.Helper()
	obj := k.Object(t, body)
	return obj, k.write(t, k.NewChange(t.Context(), obj, nil, ""))
}

// Update takes a merge patch of old through an update, by a sub-resource if
// that is not empty.
func (k Kind) Update(t *testing.T, old *meta.Object, patch, subresource string) (*meta.Object, []string) {
	t.Helper()
	var change map[string]any
	require.NoError(t, json.Unmarshal([]byte(patch), &change))
	tree := merge(meta.Clone(old.Tree()).(map[string]any), change)
	text, err := json.Marshal(tree)
	require.NoError(t, err)
	obj := k.Object(t, string(text))
	if subresource != "" {
		sub := k.Subresource(subresource)
		require.NotNil(t, sub)
		in := obj
		obj = old.Clone()
		sub.Accept(obj, in)
	}
	return obj, k.write(t, k.NewChange(t.Context(), obj, old, subresource))
}

// write returns the causes of a write, after the kind's pool, of which everything
// is free, gave the object what it lacks.
func (k Kind) write(t *testing.T, w *registry.Change[meta.Object]) []string {
	t.Helper()
	require.NoError(t, k.Defaults(w))
	k.PrepareForWrite(w)
	if k.Pool != nil && w.Subresource == "" {
		found, err := k.Pool.Allot(w.New, w.Old, func(string) bool { return true })
		require.NoError(t, err)
		if len(found) > 0 {
			return causes(found)
		}
	}
	return causes(k.ValidateWrite(w))
}

// Cell returns what a column shows of an object.
func (k Kind) Cell(t *testing.T, obj *meta.Object, column string) any {
	t.Helper()
	for _, c := range k.Columns {
		if c.Name == column {
			return c.Cell(obj)
		}
	}
	require.Fail(t, "no such column", column)
	return nil
}

// merge applies a JSON merge patch.
func merge(dst, patch map[string]any) map[string]any {
	for k, v := range patch {
		below, ok := v.(map[string]any)
		switch {
		case v == nil:
			delete(dst, k)
		case ok:
			into, _ := dst[k].(map[string]any)
			if into == nil {
				into = map[string]any{}
			}
			dst[k] = merge(into, below)
		default:
			dst[k] = v
		}
	}
	return dst
}

func causes(list []meta.Cause) []string {
	out := []string{}
	for _, c := range list {
		out = append(out, strings.TrimPrefix(string(c.Reason), "FieldValue")+":"+c.Field)
	}
	return out
}
