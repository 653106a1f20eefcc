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

// TestHooksThatFailAreTold: what Default or Prepare leaves is kept or is an error, and
// so is a fault that nobody would be told.
func TestHooksThatFailAreTold(t *testing.T) {
	unwritable := func(w *registry.Change[scored]) { w.New.Note, w.New.Score = "x", math.NaN() }
	faulty := func(w *registry.Change[scored]) { w.Invalid(check.At("note"), w.New.Note, "is bad") }
	faultyTree := func(w *registry.Change[meta.Object]) { w.Invalid(check.At("note"), "", "is bad") }
	for _, c := range []struct {
		kind registry.Definition[scored]
		want string
	}{
		{registry.Definition[scored]{Default: unwritable}, "the hook Default of example.com/v1, Kind=Scored: left an object that cannot be written: score: "},
		{registry.Definition[scored]{Prepare: unwritable}, "the hook Prepare of example.com/v1, Kind=Scored: left an object that cannot be written: score: "},
		{registry.Definition[scored]{Default: faulty}, "the hook Default of example.com/v1, Kind=Scored: added a fault, which only Validate may do: note: "},
		{registry.Definition[scored]{Prepare: faulty}, "the hook Prepare of example.com/v1, Kind=Scored: added a fault, which only Validate may do: note: "},
		{registry.Definition[scored]{Behavior: registry.Behavior{Prepare: faultyTree}}, "the hook Prepare of example.com/v1, Kind=Scored: added a fault, which only Validate may do: note: "},
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

// TestHooksThatCannotDoTheirWork: the error of a hook ends the write, and the hooks
// that would come after it do not run.
func TestHooksThatCannotDoTheirWork(t *testing.T) {
	refused := meta.BadRequest("nobody may")
	tree := func(w *registry.Change[meta.Object]) { w.Err = errors.New("the read failed") }
	typed := func(w *registry.Change[scored]) { w.Err = refused }
	never := func(*registry.Change[scored]) { t.Error("the typed hook ran") }
	b := registry.Behavior{Default: tree, Prepare: tree, Validate: tree, BeginDelete: tree}
	for _, c := range []struct {
		kind registry.Definition[scored]
		want string
	}{
		{registry.Definition[scored]{Behavior: b}, "Internal error occurred: the hook %s of example.com/v1, Kind=Scored: the read failed"},
		{registry.Definition[scored]{Behavior: b, Default: never, Prepare: never, Validate: never}, "Internal error occurred: the hook %s of example.com/v1, Kind=Scored: the read failed"},
		{registry.Definition[scored]{Default: typed, Prepare: typed, Validate: typed}, refused.Error()},
	} {
		c.kind.Group, c.kind.Version, c.kind.Kind = "example.com", "v1", "Scored"
		typ, err := resource.Compile(registry.Of(c.kind), names.Orch)
		require.NoError(t, err)
		w := typ.Hub.NewChange(t.Context(), meta.NewObject(map[string]any{"score": 1.5}), nil, "")
		says := func(hook string, err error) {
			t.Helper()
			assert.EqualError(t, err, strings.Replace(c.want, "%s", hook, 1))
		}
		says("Default", typ.Hub.Defaults(w))
		says("Prepare", typ.Hub.PrepareForWrite(w))
		_, err = typ.Hub.ValidateWrite(w)
		says("Validate", err)
		if typ.BeginDelete != nil {
			says("Terminate", typ.Hub.BeginDeletion(w))
		}
	}
}

// TestWhatWasWrongMayStay: a write of the metadata alone is not told what was wrong with the
// object before, but what the metadata makes wrong.
func TestWhatWasWrongMayStay(t *testing.T) {
	k := registry.Definition[scored]{Group: "example.com", Version: "v1", Kind: "Scored", Validate: func(w *registry.Change[scored]) {
		if w.New.Note == "" {
			w.Required(check.At("note"), "")
		}
		if w.New.Score > 1 && w.New.Labels["high"] == "" {
			w.Invalid(check.At("score"), w.New.Score, "must be labelled")
		}
		if w.Features.Enabled("Strict") {
			w.Invalid(check.At("note"), w.New.Note, "is not taken any more")
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
	assert.Equal(t, []string{"score"}, fields(obj(nil), obj(high)), "the label has gone")
	assert.Empty(t, fields(obj(nil), obj(nil)))
	mended := obj(high)
	mended.Set(2.5, "score")
	assert.Equal(t, []string{"note", "note"}, fields(mended, obj(high)))
}
