package objects_test

import (
	"encoding/json"
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

// Hubs of things, which are stored as older ones say.
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

func hubOf[Hub, Old any](t *testing.T, to func(*Old, *Hub), from func(*Hub, *Old)) *resource.Type {
	typ, err := resource.Compile(registry.Of(registry.Definition[Hub]{
		Group: "example.com", Version: "v2", Kind: "Thing", Storage: "v1",
		Versions: []registry.VersionOf[Hub]{registry.Spoke[Old, Hub]{Version: "v1",
			ToHub: func(o *Old, h *Hub) error { to(o, h); return nil }, FromHub: func(h *Hub, o *Old) error { from(h, o); return nil },
		}},
	}), names.Orch)
	require.NoError(t, err)
	return typ
}

const aThing = "things.example.com/default/a"

// change writes the object of the hub with another field.
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
	require.NoError(t, json.Unmarshal(text, &m))
	return m
}

func now(t *testing.T, b storage.Backend) map[string]any {
	rec, err := b.Get(t.Context(), aThing, 0)
	require.NoError(t, err)
	return tree(t, rec.Value)
}

// TestUnfitInTheStoredVersion: what a conversion cannot take stays in the record.
func TestUnfitInTheStoredVersion(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	one := opened(t, b, thingOf[named](t, "Thing"))
	load(t, one)
	put(t, one.Store(), "a", `,"size":"large"`)
	two := opened(t, b, hubOf(t, func(o *sized, h *leveled) { h.Size = o.Size }, func(h *leveled, o *sized) { o.Size = h.Size }))
	load(t, two)
	change(t, two.Store(), "level", 5)
	assert.Equal(t, "large", now(t, b)["size"])
	assert.EqualValues(t, 5, now(t, two.Store())["level"])
	change(t, two.Store(), "size", 7)
	assert.EqualValues(t, 7, now(t, b)["size"])
}

// TestUnshownInTheFormOfAHub: what a newer release has said of the hub stays, also after
// one wrote that knows no hub.
func TestUnshownInTheFormOfAHub(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	newest := hubOf(t, func(o *sized, h *extended) { h.Size = o.Size }, func(h *extended, o *sized) { o.Size = h.Size })
	three := opened(t, b, newest)
	load(t, three)
	_, err := three.Store().Commit(t.Context(), storage.Write{Key: aThing, Value: []byte(`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a"},"size":1,"level":1,"extra":"x"}`)})
	require.NoError(t, err)
	change(t, b, "size", 2) // as the oldest one does
	two := opened(t, b, hubOf(t, func(o *sized, h *leveled) { h.Size = o.Size }, func(h *leveled, o *sized) { o.Size = h.Size }))
	load(t, two)
	change(t, two.Store(), "level", 3)
	assert.NotContains(t, now(t, two.Store()), "extra")
	three = opened(t, b, newest)
	load(t, three)
	got := now(t, three.Store())
	assert.EqualValues(t, []any{2.0, 3.0, "x"}, []any{got["size"], got["level"], got["extra"]})
}
