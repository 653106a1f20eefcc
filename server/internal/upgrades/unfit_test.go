package upgrades_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestUnrepresentableObjectsCanBeMigratedAndDeleted: an object whose stored version cannot
// represent a default of the hub, and that has an unknown field, can lose a finalizer, be migrated
// and be deleted.
func TestUnrepresentableObjectsCanBeMigratedAndDeleted(t *testing.T) {
	t.Parallel()
	type levelled struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int32 `json:"size,omitempty"`
		Level           int32 `json:"level,omitempty" schema:"default=13"`
	}
	kind := registry.Of(registry.Definition[levelled]{
		Group: "example.com", Version: "v2", Kind: "Gadget", Storage: "v1",
		Versions: []registry.VersionOf[levelled]{registry.Spoke[plainGadget, levelled]{Version: "v1",
			ToHub: func(o *plainGadget, h *levelled) error { h.Size = o.Size; return nil },
			FromHub: func(h *levelled, o *plainGadget) error {
				if h.Level == 13 {
					return errors.New("level: nobody has it")
				}
				o.Size = h.Size
				return nil
			},
		}},
	})
	const key, gadget = "gadgets.example.com/default/g", "/apis/example.com/v2/namespaces/default/gadgets/g"
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	_, err := store.Commit(t.Context(), storage.Write{Key: key, Value: []byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"default","uid":"u",
		"creationTimestamp":"2026-01-01T00:00:00Z","future":"kept","finalizers":["example.com/a","example.com/b"]},"size":3,"future":"kept"}`)})
	require.NoError(t, err)
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(kind))
	a := apitest.InProcess(t, s)
	require.NoError(t, s.Migrate(t.Context(), nil))
	got := a.Must(200, "PATCH", gadget, `[{"op":"remove","path":"/metadata/finalizers/1"}]`, "Content-Type", "application/json-patch+json")
	assert.EqualValues(t, []any{3.0, 13.0}, []any{got.Body["size"], got.Body["level"]})
	kept := apitest.StoredObject(t, store, key)
	assert.Equal(t, []any{"kept", "kept"}, []any{kept["future"], apitest.Nested(kept, "metadata", "future")})
	assert.Nil(t, apitest.Nested(got.Body, "metadata", "future"))
	a.Must(422, "PATCH", gadget, `{"size":4}`)
	a.Must(200, "DELETE", gadget, nil)
	a.Must(200, "PATCH", gadget, `{"metadata":{"finalizers":null}}`)
	a.Must(404, "GET", gadget, nil)
}

// TestBuildRefusesKindWithChangedScope: a kind with stored objects of another scope is refused
// with the reason, and the previous release still serves the objects.
func TestBuildRefusesKindWithChangedScope(t *testing.T) {
	t.Parallel()
	kind := func(scope registry.Scope) *registry.Kind {
		return registry.Of(registry.Definition[plainGadget]{Group: "example.com", Version: "v1", Kind: "Gadget", Scope: scope})
	}
	for _, c := range []struct {
		was, is registry.Scope
		path    string
		what    string
	}{
		{registry.Namespaced, registry.Cluster, storedGadgets, "has a namespace, but the kind is cluster-scoped"},
		{registry.Cluster, registry.Namespaced, "/apis/example.com/v1/gadgets", "has no namespace, but the kind is namespaced"},
	} {
		store := memstore.New(memstore.Options{})
		t.Cleanup(func() { _ = store.Close() })
		s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(kind(c.was)))
		a := apitest.InProcess(t, s)
		a.Must(201, "POST", c.path, `{"metadata":{"name":"g"}}`)
		e := refusedStore(t, store, kind(c.is))
		require.Len(t, e.Problems, 1)
		assert.Equal(t, c.what, e.Problems[0].Text)
		s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(kind(c.was)))
		a.Must(200, "GET", c.path+"/g", nil)
	}
}

// TestBuildReportsObjectsThatConversionRefuses: a release whose conversion refuses stored objects
// reports them at start.
func TestBuildReportsObjectsThatConversionRefuses(t *testing.T) {
	t.Parallel()
	kind := func(refuses bool) *registry.Kind {
		return registry.Of(registry.Definition[leveledGadget]{
			Group: "example.com", Version: "v2", Kind: "Gadget", Storage: "v1",
			Versions: []registry.VersionOf[leveledGadget]{registry.Spoke[plainGadget, leveledGadget]{Version: "v1",
				ToHub: func(o *plainGadget, h *leveledGadget) error {
					if h.Size = o.Size; refuses && o.Size == 3 {
						return errors.New("size: nobody has it")
					}
					return nil
				},
				FromHub: func(h *leveledGadget, o *plainGadget) error { o.Size = h.Size; return nil },
			}},
		})
	}
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(kind(false))))
	a.Must(201, "POST", storedGadgets, `{"metadata":{"name":"g"},"size":3}`)
	a.Must(201, "POST", storedGadgets, `{"metadata":{"name":"h"},"size":4}`)
	e := refusedStore(t, store, kind(true))
	assert.Equal(t, []server.Incompatibility{{
		Resource: meta.GroupResource{Group: "example.com", Resource: "gadgets"}, Objects: 1, Keys: []meta.Key{{Namespace: "default", Name: "g"}},
		Text: "cannot be read: from version example.com/v1 to example.com/v2: size: nobody has it",
	}}, e.Problems)
}

// TestProblemsCountObjectsOnce: an object with several problems counts as a single object.
func TestProblemsCountObjectsOnce(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[gadget1]("v1", nil))))
	parts, more := []any{}, map[string]any{}
	for i := range 100 {
		parts = append(parts, map[string]any{"name": fmt.Sprint("p", i), "old": "o"})
		more[fmt.Sprint("m", i)] = "text"
	}
	for _, name := range []string{"g", "h"} {
		a.Must(201, "POST", storedGadgets, newGadget(name, map[string]any{"parts": parts, "more": more}))
	}
	type counted struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Parts []gadgetPart2    `json:"parts,omitempty" schema:"listType=map,listMapKeys=name"`
			More  map[string]int32 `json:"more,omitempty"`
		} `json:"spec"`
	}
	e := refusedStore(t, store, gadgetKind[counted]("v1", nil))
	require.Len(t, e.Problems, 51)
	for _, p := range e.Problems {
		assert.Equal(t, 2, p.Objects, p.Text)
		assert.Equal(t, []meta.Key{{Namespace: "default", Name: "g"}, {Namespace: "default", Name: "h"}}, p.Keys)
	}
}

// narrow is a store that refuses further writes of an object as too large.
type narrow struct {
	*memstore.Store
	key string
}

func (narrow) Close() error { return nil }

func (n narrow) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	for _, w := range ws {
		if w.Key == n.key && w.Value != nil {
			return 0, fmt.Errorf("commit %q: %w", w.Key, storage.ErrTooLarge)
		}
	}
	return n.Store.Commit(ctx, ws...)
}

// TestMigrateSkipsObjectsThatBecomeTooLarge: an object whose migrated record would be too large
// stays as it is and does not stop the migration.
func TestMigrateSkipsObjectsThatBecomeTooLarge(t *testing.T) {
	t.Parallel()
	store, s, a := storedGadgetsOfOne(t, 3)
	s.Restart(apitest.WithStorage(narrow{store, "gadgets.example.com/default/g0001"}), serves(gadgetKind[gadget2]("v1", upgradeGadget)))
	var last server.Migration
	require.NoError(t, s.Migrate(t.Context(), func(m server.Migration) {
		if m.Resource.Resource == "gadgets" {
			last = m
		}
	}))
	last.Rate = 0
	assert.Equal(t, server.Migration{Resource: meta.GroupResource{Group: "example.com", Resource: "gadgets"}, Done: 3, Total: 3, Rewritten: 2, Kept: 1}, last)
	assert.Equal(t, "red", apitest.Nested(apitest.StoredObject(t, store, "gadgets.example.com/default/g0001"), "spec", "color"))
	assert.Equal(t, "red", apitest.Nested(a.Must(200, "GET", storedGadgets+"/g0001", nil).Body, "spec", "colour"))
}

// TestUnreadableErrorNamesOtherReleases: the error for an unreadable object says that another release may have
// stored it, not only that it may be damaged.
func TestUnreadableErrorNamesOtherReleases(t *testing.T) {
	t.Parallel()
	store, s, a := storedGadgetsOfOne(t, 2)
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(gadgetKind[gadget1]("v2", nil)))
	const gadgets = "/apis/example.com/v2/namespaces/default/gadgets"
	for _, path := range []string{gadgets, gadgets + "/g0000"} {
		assert.Contains(t, apitest.NestedString(a.Must(500, "GET", path, nil).Body, "message"), "or a release that this one cannot convert from wrote it", path)
	}
}
