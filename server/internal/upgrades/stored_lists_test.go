package upgrades_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// rackOf is the object of a kind with parts of type Part.
type rackOf[Part any] struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Parts []Part `json:"parts,omitempty" schema:"listType=map,listMapKeys=name"`
		Size  int32  `json:"size,omitempty"`
	} `json:"spec"`
}

// tray has parts without keys.
type tray[Part any] struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Parts []Part `json:"parts,omitempty"`
		Size  int32  `json:"size,omitempty"`
	} `json:"spec"`
}

// wordTray has words as parts.
type wordTray = tray[string]

func parts(a apitest.Response) any { return apitest.Nested(a.Body, "spec", "parts") }

// TestWriteOverIncompatibleObjectReadsBack: fields that a client writes over incompatible fields
// are read back.
func TestWriteOverIncompatibleObjectReadsBack(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[wordTray]("v1", nil)))
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", storedGadgets, newGadget("g", map[string]any{"parts": []any{"p"}}))
	type part struct {
		Name string `json:"name"`
		New  string `json:"new,omitempty"`
	}
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(gadgetKind[rackOf[part]]("v1", nil)))
	written := []any{map[string]any{"name": "q"}}
	assert.Equal(t, written, parts(a.Must(200, "PATCH", storedGadgets+"/g", map[string]any{"spec": map[string]any{"parts": written}})))
	assert.Equal(t, written, parts(a.Must(200, "GET", storedGadgets+"/g", nil)))
}

// TestItemsWithoutKeysKeepHiddenFields: items of a list without keys keep fields that are not
// shown, even if a default is shown in the items.
func TestItemsWithoutKeysKeepHiddenFields(t *testing.T) {
	t.Parallel()
	type part1 struct {
		Name string `json:"name"`
		Old  string `json:"old,omitempty"`
	}
	type part2 struct {
		Name  string `json:"name"`
		Level int32  `json:"level,omitempty" schema:"default=3"`
	}
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[tray[part1]]("v1", nil)))
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", storedGadgets, newGadget("g", map[string]any{"parts": []any{map[string]any{"name": "p", "old": "o"}}}))
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(gadgetKind[tray[part2]]("v1", nil)))
	a.Must(200, "PATCH", storedGadgets+"/g", `[{"op":"add","path":"/spec/parts/-","value":{"name":"q"}}]`, "Content-Type", "application/json-patch+json")
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(gadgetKind[tray[part1]]("v1", nil)))
	assert.Equal(t, []any{map[string]any{"name": "p", "old": "o"}, map[string]any{"name": "q"}}, parts(a.Must(200, "GET", storedGadgets+"/g", nil)))
}

// TestItemsWithInvalidKeysAreKept: items of a keyed list with a key that does not fit the schema
// are kept.
func TestItemsWithInvalidKeysAreKept(t *testing.T) {
	t.Parallel()
	type part1 struct {
		Name int32  `json:"name"`
		Old  string `json:"old,omitempty"`
	}
	type part2 struct {
		Name string `json:"name,omitempty" schema:"default=none"`
		Old  string `json:"old,omitempty"`
	}
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[rackOf[part1]]("v1", nil)))
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", storedGadgets, newGadget("g", map[string]any{"parts": []any{map[string]any{"name": 7, "old": "o"}}}))
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(gadgetKind[rackOf[part2]]("v1", nil)))
	a.Must(200, "PATCH", storedGadgets+"/g", `[{"op":"add","path":"/spec/parts/-","value":{"name":"q"}}]`, "Content-Type", "application/json-patch+json")
	assert.ElementsMatch(t, []any{map[string]any{"name": "none", "old": "o"}, map[string]any{"name": "q"}}, parts(a.Must(200, "GET", storedGadgets+"/g", nil)))
	t.Log(apitest.StoredObject(t, store, "gadgets.example.com/default/g"))
}
