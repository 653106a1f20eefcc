package resource_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

type scored struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Score float64 `json:"score"`
	Note  string  `json:"note,omitempty"`
}

// TestEditingHooksMustLeaveValidObjects checks that Default and Prepare fail if they leave an
// object that cannot be encoded or add a violation, which would not be reported.
func TestEditingHooksMustLeaveValidObjects(t *testing.T) {
	unwritable := func(w *registry.Change[scored]) { w.New.Note, w.New.Score = "x", math.NaN() }
	faulty := func(w *registry.Change[scored]) { w.Invalid(check.At("note"), w.New.Note, "is bad") }
	faultyTree := func(w *registry.Change[meta.Object]) { w.Invalid(check.At("note"), "", "is bad") }
	for _, c := range []struct {
		kind registry.Definition[scored]
		want string
	}{
		{registry.Definition[scored]{Default: unwritable}, "hook Default of example.com/v1, Kind=Scored: left an object that cannot be encoded: score: "},
		{registry.Definition[scored]{Prepare: unwritable}, "hook Prepare of example.com/v1, Kind=Scored: left an object that cannot be encoded: score: "},
		{registry.Definition[scored]{Default: faulty}, "hook Default of example.com/v1, Kind=Scored added a violation, which only Validate may do: note: "},
		{registry.Definition[scored]{Prepare: faulty}, "hook Prepare of example.com/v1, Kind=Scored added a violation, which only Validate may do: note: "},
		{registry.Definition[scored]{Behavior: registry.Behavior{Prepare: faultyTree}}, "hook Prepare of example.com/v1, Kind=Scored added a violation, which only Validate may do: note: "},
	} {
		c.kind.Group, c.kind.Version, c.kind.Kind = "example.com", "v1", "Scored"
		typ, err := resource.Compile(registry.Of(c.kind), names.Orch)
		require.NoError(t, err)
		w := typ.Hub.NewChange(t.Context(), meta.NewObject(map[string]any{"score": 1.5}), nil, "")
		err = typ.Hub.Defaults(w)
		if err == nil {
			err = typ.Hub.PrepareForWrite(w)
		}
		assert.ErrorContains(t, err, c.want)
	}
}

// TestHookErrorEndsWrite checks that a write ends with the error of a hook, and that the hooks
// after it do not run.
func TestHookErrorEndsWrite(t *testing.T) {
	refused := meta.BadRequest("not allowed")
	tree := func(w *registry.Change[meta.Object]) { w.Err = errors.New("the read failed") }
	typed := func(w *registry.Change[scored]) { w.Err = refused }
	never := func(*registry.Change[scored]) { t.Error("the typed hook ran") }
	b := registry.Behavior{Default: tree, Prepare: tree, Validate: tree, BeginDelete: tree}
	for _, c := range []struct {
		kind registry.Definition[scored]
		want string
	}{
		{registry.Definition[scored]{Behavior: b}, "Internal error occurred: hook %s of example.com/v1, Kind=Scored: the read failed"},
		{registry.Definition[scored]{Behavior: b, Default: never, Prepare: never, Validate: never}, "Internal error occurred: hook %s of example.com/v1, Kind=Scored: the read failed"},
		{registry.Definition[scored]{Default: typed, Prepare: typed, Validate: typed}, refused.Error()},
	} {
		c.kind.Group, c.kind.Version, c.kind.Kind = "example.com", "v1", "Scored"
		typ, err := resource.Compile(registry.Of(c.kind), names.Orch)
		require.NoError(t, err)
		w := typ.Hub.NewChange(t.Context(), meta.NewObject(map[string]any{"score": 1.5}), nil, "")
		assertError := func(hook string, err error) {
			t.Helper()
			assert.EqualError(t, err, strings.Replace(c.want, "%s", hook, 1))
		}
		assertError("Default", typ.Hub.Defaults(w))
		assertError("Prepare", typ.Hub.PrepareForWrite(w))
		_, err = typ.Hub.ValidateWrite(w)
		assertError("Validate", err)
		if typ.BeginDelete != nil {
			assertError("BeginDelete", typ.Hub.BeginDeletion(w))
		}
	}
}

// TestMetadataWriteKeepsOldViolations checks that a write of the metadata alone reports only the
// violations that it causes, not those that the stored object already has.
func TestMetadataWriteKeepsOldViolations(t *testing.T) {
	k := registry.Definition[scored]{Group: "example.com", Version: "v1", Kind: "Scored", Validate: func(w *registry.Change[scored]) {
		if w.New.Note == "" {
			w.Required(check.At("note"), "")
		}
		if w.New.Score > 1 && w.New.Labels["high"] == "" {
			w.Invalid(check.At("score"), w.New.Score, "must be labelled")
		}
		if w.Features.Enabled("Strict") {
			w.Invalid(check.At("note"), w.New.Note, "is no longer allowed")
		}
	}}
	typ, err := resource.Compile(registry.Of(k), names.Orch)
	require.NoError(t, err)
	typ.Features, err = features.New("", map[string]bool{"Strict": true}, features.Gate{Name: "Strict", Alpha: "0.0", Doc: "no notes"})
	require.NoError(t, err)
	obj := func(labels map[string]any) *meta.Object {
		return meta.NewObject(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Scored", "score": 1.5,
			"metadata": map[string]any{"name": "a", "namespace": "default", "resourceVersion": "7", "labels": labels},
		})
	}
	fields := func(now, old *meta.Object) (list []string) {
		causes, err := typ.Hub.ValidateContent(typ.Hub.NewChange(t.Context(), now, old, ""))
		require.NoError(t, err)
		for _, c := range causes {
			list = append(list, c.Field)
		}
		return list
	}
	high := map[string]any{"high": "yes"}
	assert.Equal(t, []string{"note", "note"}, fields(obj(high), nil))
	assert.Empty(t, fields(obj(map[string]any{"high": "very"}), obj(high)))
	assert.Equal(t, []string{"score"}, fields(obj(nil), obj(high)), "the required label was removed")
	assert.Empty(t, fields(obj(nil), obj(nil)))
	changed := obj(high)
	changed.Set(2.5, "score")
	assert.Equal(t, []string{"note", "note"}, fields(changed, obj(high)))
}
