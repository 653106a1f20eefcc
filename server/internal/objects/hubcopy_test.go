package objects_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// Two hubs of the kind Thing, which is stored in the version of an older release.
type (
	leveled struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int32 `json:"size,omitempty"`
		Level           int32 `json:"level,omitempty"`
	}
	extended struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int32  `json:"size,omitempty"`
		Level           int32  `json:"level,omitempty"`
		Extra           string `json:"extra,omitempty"`
	}
)

// thingWithHub returns the type Thing with the hub v2 and the storage version v1.
func thingWithHub[Hub, Old any](t *testing.T, to func(*Old, *Hub), from func(*Hub, *Old)) *resource.Type {
	typ, err := resource.Compile(registry.Of(registry.Definition[Hub]{
		Group: "example.com", Version: "v2", Kind: "Thing", Storage: "v1",
		Versions: []registry.VersionOf[Hub]{registry.Spoke[Old, Hub]{Version: "v1",
			ToHub: func(o *Old, h *Hub) error { to(o, h); return nil }, FromHub: func(h *Hub, o *Old) error { from(h, o); return nil },
		}},
	}), names.Orch)
	require.NoError(t, err)
	return typ
}

// aThing is the storage key of the object of these tests.
const aThing = "things.example.com/default/a"

// change writes the object through b with another value in a field.
func change(t *testing.T, b storage.Backend, field string, value any) {
	rec, err := b.Get(t.Context(), aThing, 0)
	require.NoError(t, err)
	obj := tree(t, rec.Value)
	obj[field] = value
	text, err := json.Marshal(obj)
	require.NoError(t, err)
	_, err = b.Commit(t.Context(), storage.Write{Key: aThing, Value: text, Expect: rec.Revision})
	require.NoError(t, err)
}

func tree(t *testing.T, text []byte) (m map[string]any) {
	require.NoError(t, json.NewDecoder(bytes.NewReader(text)).Decode(&m)) // ignores the signature
	return m
}

// now returns the stored object of b.
func now(t *testing.T, b storage.Backend) map[string]any {
	rec, err := b.Get(t.Context(), aThing, 0)
	require.NoError(t, err)
	return tree(t, rec.Value)
}

// TestUnconvertibleValueStaysInRecord: a write of another field keeps a stored value that the type cannot read.
func TestUnconvertibleValueStaysInRecord(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	one := opened(t, b, thingOf[named](t, "Thing"))
	load(t, one)
	put(t, one.Store(), "a", `,"size":"large"`)
	two := opened(t, b, thingWithHub(t, func(o *sized, h *leveled) { h.Size = o.Size }, func(h *leveled, o *sized) { o.Size = h.Size }))
	load(t, two)
	change(t, two.Store(), "level", 5)
	assert.Equal(t, "large", now(t, b)["size"])
	assert.EqualValues(t, 5, now(t, two.Store())["level"])
	change(t, two.Store(), "size", 7)
	assert.EqualValues(t, 7, now(t, b)["size"])
}

// TestHubCopyKeepsUnshownFields: a field of a newer hub survives writes by a release that does not know the field,
// and by a release that has no hub at all.
func TestHubCopyKeepsUnshownFields(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	newest := thingWithHub(t, func(o *sized, h *extended) { h.Size = o.Size }, func(h *extended, o *sized) { o.Size = h.Size })
	three := opened(t, b, newest)
	load(t, three)
	_, err := three.Store().Commit(t.Context(), storage.Write{Key: aThing, Value: []byte(`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a"},"size":1,"level":1,"extra":"x"}`)})
	require.NoError(t, err)
	change(t, b, "size", 2) // as the oldest release does
	two := opened(t, b, thingWithHub(t, func(o *sized, h *leveled) { h.Size = o.Size }, func(h *leveled, o *sized) { o.Size = h.Size }))
	load(t, two)
	change(t, two.Store(), "level", 3)
	assert.NotContains(t, now(t, two.Store()), "extra")
	three = opened(t, b, newest)
	load(t, three)
	got := now(t, three.Store())
	assert.EqualValues(t, []any{2.0, 3.0, "x"}, []any{got["size"], got["level"], got["extra"]})
}

// TestWriteThatVersionOfUnshownDataCannotHoldIsRefused: a record with unshown data keeps its version. A write that
// this version cannot represent is refused, but the metadata of the object can still change.
func TestWriteThatVersionOfUnshownDataCannotHoldIsRefused(t *testing.T) {
	type plain struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int32 `json:"size,omitempty"`
	}
	b := memstore.New(memstore.Options{})
	defer b.Close()
	one := opened(t, b, thingOf[sized](t, "Thing"))
	load(t, one)
	put(t, one.Store(), "a", `,"size":3,"old":"kept"`)
	refuses := int32(13)
	typ, err := resource.Compile(registry.Of(registry.Definition[leveled]{
		Group: "example.com", Version: "v2", Kind: "Thing", Storage: "v1",
		Versions: []registry.VersionOf[leveled]{registry.Spoke[plain, leveled]{Version: "v1",
			ToHub: func(o *plain, h *leveled) error { h.Size = o.Size; return nil },
			FromHub: func(h *leveled, o *plain) error {
				if h.Level == refuses {
					return errors.New("level: not supported")
				}
				o.Size = h.Size
				return nil
			},
		}},
	}), names.Orch)
	require.NoError(t, err)
	two := opened(t, b, typ)
	load(t, two)
	write := func(field string, value any) error {
		rec, err := two.Store().Get(t.Context(), aThing, 0)
		require.NoError(t, err)
		obj := tree(t, rec.Value)
		obj[field] = value
		text, err := json.Marshal(obj)
		require.NoError(t, err)
		_, err = two.Store().Commit(t.Context(), storage.Write{Key: aThing, Value: text, Expect: rec.Revision})
		return err
	}
	require.NoError(t, write("level", 5))
	before := now(t, b)
	assert.Equal(t, "kept", before["old"])
	err = write("level", 13)
	var refused *meta.Status
	require.ErrorAs(t, err, &refused)
	assert.EqualValues(t, 422, refused.Code)
	assert.Contains(t, refused.Message, `not supported`)
	assert.Contains(t, refused.Message, `"old"`)
	assert.Equal(t, before, now(t, b))

	refuses = 5 // the version cannot represent the present object
	require.NoError(t, write("metadata", map[string]any{"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}))
	after := now(t, b)
	assert.Equal(t, []any{"kept", 3.0}, []any{after["old"], after["size"]})
	got := now(t, two.Store())
	assert.Equal(t, map[string]any{"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}, got["metadata"])
	assert.EqualValues(t, 5, got["level"])

	// In a sequence, the values before the refused value are committed.
	refuses = 13
	rec, err := two.Store().Get(t.Context(), aThing, 0)
	require.NoError(t, err)
	of := func(level int) []byte {
		obj := tree(t, rec.Value)
		obj["level"] = level
		text, _ := json.Marshal(obj)
		return text
	}
	revs, err := storage.CommitSequence(t.Context(), two.Store(), storage.Write{Key: aThing, Value: of(6), Expect: rec.Revision}, of(7), of(13), of(8))
	require.ErrorAs(t, err, &refused)
	assert.Len(t, revs, 2)
	assert.EqualValues(t, 7, now(t, two.Store())["level"])
	assert.Equal(t, "kept", now(t, b)["old"])
}

// TestCopyOfNewerHubIsMerged: a field that only a newer hub has is still there when the newer release returns, and so
// are the changes that the older release made.
func TestCopyOfNewerHubIsMerged(t *testing.T) {
	type newest struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int32  `json:"size,omitempty"`
		Level           int32  `json:"level,omitempty"`
		Extra           string `json:"extra,omitempty"`
	}
	older := registry.Spoke[leveled, newest]{Version: "v2",
		ToHub:   func(o *leveled, h *newest) error { h.Size, h.Level = o.Size, o.Level; return nil },
		FromHub: func(h *newest, o *leveled) error { o.Size, o.Level = h.Size, h.Level; return nil }}
	oldest := registry.Spoke[sized, newest]{Version: "v1",
		ToHub:   func(o *sized, h *newest) error { h.Size = o.Size; return nil },
		FromHub: func(h *newest, o *sized) error { o.Size = h.Size; return nil }}
	typ, err := resource.Compile(registry.Of(registry.Definition[newest]{
		Group: "example.com", Version: "v3", Kind: "Thing", Storage: "v1", Versions: []registry.VersionOf[newest]{older, oldest},
	}), names.Orch)
	require.NoError(t, err)
	middle := thingWithHub(t, func(o *sized, h *leveled) { h.Size = o.Size }, func(h *leveled, o *sized) { o.Size = h.Size })
	for name, c := range map[string]struct {
		field string
		value any
		want  []any
	}{
		"field of both versions":     {"size", 2, []any{2.0, nil, "x"}},
		"field of the newer version": {"level", 3, []any{1.0, 3.0, "x"}},
		"no change":                  {"level", nil, []any{1.0, nil, "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := memstore.New(memstore.Options{})
			defer b.Close()
			three := opened(t, b, typ)
			load(t, three)
			_, err := three.Store().Commit(t.Context(), storage.Write{Key: aThing, Value: []byte(`{"apiVersion":"example.com/v3","kind":"Thing","metadata":{"name":"a"},"size":1,"extra":"x"}`)})
			require.NoError(t, err)
			for range 2 { // also after another start
				two := opened(t, b, middle)
				load(t, two)
				change(t, two.Store(), "metadata", map[string]any{"name": "a", "annotations": now(t, two.Store())["metadata"].(map[string]any)["annotations"]})
				if c.value != nil {
					change(t, two.Store(), c.field, c.value)
				}
				change(t, two.Store(), "level", c.want[1])
			}
			got := now(t, opened(t, b, typ).Store())
			assert.Equal(t, c.want, []any{got["size"], got["level"], got["extra"]})
			change(t, opened(t, b, typ).Store(), "extra", "y")
			got = now(t, opened(t, b, typ).Store())
			assert.Equal(t, []any{c.want[0], c.want[1], "y"}, []any{got["size"], got["level"], got["extra"]})
			assert.NotContains(t, now(t, opened(t, b, typ).Store())["metadata"], "annotations")
		})
	}
}
