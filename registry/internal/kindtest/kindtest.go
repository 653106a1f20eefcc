// Package kindtest runs objects through the defaulting, preparation and validation of a built-in kind,
// for the tests of the kind.
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

// Kind is a compiled kind under test, in its storage version.
type Kind struct{ *resource.Version }

// Of compiles the kind of the given name.
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

// Object decodes an object. apiVersion and kind are set, and name and namespace if they are missing.
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
	_, faults := k.Normalize(obj)
	require.Empty(t, faults, body)
	return obj
}

// Create runs a create. It returns the resulting object and the causes of the violations in the form
// reason:field.
func (k Kind) Create(t *testing.T, body string) (*meta.Object, []string) {
	t.Helper()
	obj := k.Object(t, body)
	return obj, causes(k.write(t, k.NewChange(t.Context(), obj, nil, "")))
}

// Texts runs a create of body or, if old is not nil, an update of old with the merge patch body through
// a subresource, and returns the causes in the form "field: message".
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

// Warnings runs a valid create or update as Texts does, and returns the warnings.
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

// Update runs an update of old with a merge patch, through a subresource unless it is "".
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

// write runs a write up to validation and returns the causes. All values of the kind's allocator are
// free.
func (k Kind) write(t *testing.T, w *registry.Change[meta.Object]) []meta.StatusCause {
	t.Helper()
	require.NoError(t, k.Defaults(w))
	require.NoError(t, k.PrepareForWrite(w))
	if k.Pool != nil && w.Subresource == "" {
		found, err := k.Pool.Allocate(&registry.Allocation{Object: w.New, Old: w.Old, Free: func(string) bool { return true }})
		require.NoError(t, err)
		if len(found) > 0 {
			return found
		}
	}
	found, err := k.ValidateWrite(w)
	require.NoError(t, err)
	return found
}

// Creates runs creates and compares the causes of each body, in order; nil means none. A cause has the
// form reason:field, and may be followed by ": " and the end of the expected message.
func (k Kind) Creates(t *testing.T, cases map[string][]string) {
	t.Helper()
	for body, want := range cases {
		obj := k.Object(t, body)
		compareCauses(t, want, k.write(t, k.NewChange(t.Context(), obj, nil, "")), body)
	}
}

// Updates runs updates of old with merge patches, with causes as in Creates.
func (k Kind) Updates(t *testing.T, old *meta.Object, cases map[string][]string) {
	t.Helper()
	for patch, want := range cases {
		obj := k.patched(t, old, patch, "")
		compareCauses(t, want, k.write(t, k.NewChange(t.Context(), obj, old, "")), patch)
	}
}

// compareCauses compares causes with the expected ones, and messages if they are given.
func compareCauses(t *testing.T, want []string, got []meta.StatusCause, input string) {
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
	assert.Equal(t, append([]string{}, want...), words, input)
}

// Cell returns the value of the column for obj.
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

// merge applies a JSON merge patch to dst in place.
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

func causes(list []meta.StatusCause) []string {
	out := []string{}
	for _, c := range list {
		out = append(out, strings.TrimPrefix(string(c.Reason), "FieldValue")+":"+c.Field)
	}
	return out
}
