// Package kindtest takes objects through what a kind does with them, for the
// tests of built-in kinds.
package kindtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// Kind is a compiled kind under test.
type Kind struct{ *resource.Version }

// Of returns the kind of that name.
func Of(t *testing.T, p names.Profile, kinds []*registry.Kind, kind string) Kind {
	t.Helper()
	for _, k := range kinds {
		if k.Kind == kind {
			compiled, err := resource.Compile(k, p)
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
	return obj, causes(k.write(t, k.NewChange(t.Context(), obj, nil, "")))
}

// Texts takes a body through a create, or a patch of old through an update by a
// sub-resource, and returns what clients are told.
func (k Kind) Texts(t *testing.T, old *meta.Object, body, subresource string) []string {
	t.Helper()
	var obj *meta.Object
	if old == nil {
		obj = k.Object(t, body)
	} else {
		obj = k.patched(t, old, body, subresource)
	}
	out := []string{}
	for _, c := range k.write(t, k.NewChange(t.Context(), obj, old, subresource)) {
		out = append(out, c.Field+": "+c.Message)
	}
	return out
}

// Warnings takes a valid body through a create, or a patch of old through an update by a
// sub-resource, and returns the warnings.
func (k Kind) Warnings(t *testing.T, old *meta.Object, body, subresource string) []string {
	t.Helper()
	obj := k.Object
	if old != nil {
		obj = func(t *testing.T, body string) *meta.Object { return k.patched(t, old, body, subresource) }
	}
	w := k.NewChange(t.Context(), obj(t, body), old, subresource)
	require.Empty(t, causes(k.write(t, w)), body)
	return k.Warn(w)
}

// Update takes a merge patch of old through an update, by a sub-resource if
// that is not empty.
func (k Kind) Update(t *testing.T, old *meta.Object, patch, subresource string) (*meta.Object, []string) {
	t.Helper()
	obj := k.patched(t, old, patch, subresource)
	return obj, causes(k.write(t, k.NewChange(t.Context(), obj, old, subresource)))
}

func (k Kind) patched(t *testing.T, old *meta.Object, patch, subresource string) *meta.Object {
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
		require.NoError(t, sub.Accept(t.Context(), obj, in))
	}
	return obj
}

// write returns the causes of a write, after the kind's pool, of which everything
// is free, gave the object what it lacks.
func (k Kind) write(t *testing.T, w *registry.Change[meta.Object]) []meta.Cause {
	t.Helper()
	require.NoError(t, k.Defaults(w))
	require.NoError(t, k.PrepareForWrite(w))
	if k.Pool != nil && w.Subresource == "" {
		found, err := k.Pool.Allot(&registry.Allotment{Object: w.New, Old: w.Old, Free: func(string) bool { return true }})
		require.NoError(t, err)
		if len(found) > 0 {
			return found
		}
	}
	found, err := k.ValidateWrite(w)
	require.NoError(t, err)
	return found
}

// Creates takes bodies through a create, each with the causes that it has, in order; nil
// is none. A cause is reason:field, and may go on with ": " and the end of what clients are
// told.
func (k Kind) Creates(t *testing.T, cases map[string][]string) {
	t.Helper()
	for body, want := range cases {
		obj := k.Object(t, body)
		told(t, want, k.write(t, k.NewChange(t.Context(), obj, nil, "")), body)
	}
}

// Updates takes merge patches of an object through an update, with causes as in Creates.
func (k Kind) Updates(t *testing.T, old *meta.Object, cases map[string][]string) {
	t.Helper()
	for patch, want := range cases {
		obj := k.patched(t, old, patch, "")
		told(t, want, k.write(t, k.NewChange(t.Context(), obj, old, "")), patch)
	}
}

// told compares causes with those of a row, and texts that the row names.
func told(t *testing.T, want []string, got []meta.Cause, about string) {
	t.Helper()
	words := causes(got)
	for i := range min(len(want), len(got)) {
		cause, text, named := strings.Cut(want[i], ": ")
		switch {
		case !named || words[i] != cause:
		case strings.HasSuffix(got[i].Message, text):
			words[i] = want[i]
		default:
			words[i] += ": " + got[i].Message
		}
	}
	assert.Equal(t, append([]string{}, want...), words, about)
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
