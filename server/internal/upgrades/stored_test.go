package upgrades_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// Releases of a program with a kind Gadget. The second release has no note, renames color
// to colour, stores size as a word, and has a level.
type (
	gadget1 struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Size  int32             `json:"size,omitempty"`
			Color string            `json:"color,omitempty"`
			Note  string            `json:"note,omitempty"`
			Parts []gadgetPart1     `json:"parts,omitempty" schema:"listType=map,listMapKeys=name"`
			More  map[string]string `json:"more,omitempty"`
		} `json:"spec"`
	}
	gadgetPart1 struct {
		Name string `json:"name"`
		Old  string `json:"old,omitempty"`
	}
	gadget2 struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Size   string            `json:"size,omitempty"`
			Colour string            `json:"colour,omitempty"`
			Level  int32             `json:"level,omitempty" schema:"default=3"`
			Parts  []gadgetPart2     `json:"parts,omitempty" schema:"listType=map,listMapKeys=name"`
			More   map[string]string `json:"more,omitempty"`
		} `json:"spec"`
	}
	gadgetPart2 struct {
		Name string `json:"name"`
		New  string `json:"new,omitempty"`
	}
)

const storedGadgets = "/apis/example.com/v1/namespaces/default/gadgets"

func gadgetKind[T any](version string, upgrade func(*meta.Object) error) *registry.Kind {
	return registry.Of(registry.Definition[T]{Group: "example.com", Version: version, Kind: "Gadget", Behavior: registry.Behavior{Upgrade: upgrade}})
}

func serves(kinds ...*registry.Kind) func(*server.Builder) {
	return func(b *server.Builder) { b.Register(kinds...) }
}

func keeps(b *server.Builder) { b.ServeIncompatible = true }

func newGadget(name string, spec map[string]any, metadata ...any) map[string]any {
	m := map[string]any{"name": name}
	for i := 0; i < len(metadata); i += 2 {
		m[metadata[i].(string)] = metadata[i+1]
	}
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": m, "spec": spec}
}

// refusedStore builds a server over a store and returns the error of Build.
func refusedStore(t *testing.T, store *memstore.Store, kinds ...*registry.Kind) *server.IncompatibleError {
	t.Helper()
	b := &server.Builder{Storage: store.Fork(), Authorizer: auth.AllowAll}
	b.Register(builtin.Kinds()...)
	b.Register(kinds...)
	_, err := b.Build(t.Context())
	require.Error(t, err)
	var stored *server.IncompatibleError
	require.ErrorAs(t, err, &stored)
	return stored
}

func TestBuildRefusesWhatKindsCannotShow(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[gadget1]("v1", nil)))
	a := apitest.InProcess(t, s)
	for i := range 12 {
		a.Must(201, "POST", storedGadgets, newGadget(fmt.Sprintf("g%02d", i), map[string]any{"note": "n", "parts": []any{map[string]any{"name": "p", "old": "o"}}}))
	}
	a.Must(201, "POST", storedGadgets, newGadget("sized", map[string]any{"size": 3, "color": "red"}))

	e := refusedStore(t, store, gadgetKind[gadget2]("v1", nil))
	var whats []string
	for _, p := range e.Problems {
		whats = append(whats, fmt.Sprint(p.Resource, " ", p.Objects, " ", p.Text))
	}
	assert.Equal(t, []string{
		"gadgets.example.com 1 has a value in spec.size that does not have the type of the field",
		"gadgets.example.com 1 has the field spec.color, which the kind does not have",
		"gadgets.example.com 12 has the field spec.note, which the kind does not have",
		"gadgets.example.com 12 has the field spec.parts[].old, which the kind does not have",
	}, whats)
	assert.Contains(t, e.Error(), "default/g00, default/g01, ")
	assert.NotContains(t, e.Error(), "g10")

	e = refusedStore(t, store, gadgetKind[gadget1]("v2", nil)) // another name for the version
	require.Len(t, e.Problems, 1)
	assert.Equal(t, 13, e.Problems[0].Objects)
	assert.Contains(t, e.Problems[0].Text, "cannot be read: from version example.com/v1 to example.com/v2")

	e = refusedStore(t, store, gadgetKind[gadget2]("v1", func(*meta.Object) error { panic("oh no") }))
	assert.Contains(t, e.Error(), "oh no")
	refusedStore(t, store, gadgetKind[gadget2]("v1", nil)) // a refusal leaves nothing behind
}

func upgradeGadget(o *meta.Object) error {
	if c, ok := o.Get("spec", "color"); ok {
		o.Set(c, "spec", "colour")
		o.Delete("spec", "color")
	}
	if n, ok := o.Get("spec", "size"); ok {
		if _, number := n.(int64); number {
			o.Set(fmt.Sprint(n), "spec", "size")
		}
	}
	o.Delete("spec", "note")
	return nil
}

// onReleases runs a test on memory and on disk; open gives each release the store.
func onReleases(t *testing.T, test func(t *testing.T, open func(*server.Builder))) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		store := memstore.New(memstore.Options{})
		t.Cleanup(func() { _ = store.Close() })
		test(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
	})
	t.Run("badger", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		test(t, func(b *server.Builder) { b.Storage = apitest.OpenBadger(t, dir) })
	})
}

func TestSecondReleaseAndRollback(t *testing.T) {
	t.Parallel()
	onReleases(t, func(t *testing.T, open func(*server.Builder)) {
		s := servertest.New(t, open, serves(gadgetKind[gadget1]("v1", nil)))
		a := apitest.InProcess(t, s)
		first := a.Must(201, "POST", storedGadgets, newGadget("g", map[string]any{"size": 3, "color": "red", "more": map[string]any{"a": "b"}}))

		s.Restart(open, serves(gadgetKind[gadget2]("v1", upgradeGadget)))
		lifted := map[string]any{"size": "3", "colour": "red", "level": 3.0, "more": map[string]any{"a": "b"}}
		got := a.Must(200, "GET", storedGadgets+"/g", nil)
		assert.Equal(t, lifted, apitest.SpecOf(got))
		assert.Equal(t, first.ResourceVersion(), got.ResourceVersion(), "reading writes nothing")
		assert.Equal(t, lifted, apitest.Nested(a.Must(200, "GET", storedGadgets, nil).Body, "items").([]any)[0].(map[string]any)["spec"])
		w := a.Watch(storedGadgets + "?watch=true")
		assert.Equal(t, lifted, w.Next().Object["spec"])
		w.Close()
		a.Must(200, "PATCH", storedGadgets+"/g", `{"spec":{"parts":[{"name":"p","new":"n"}],"level":7}}`)

		s.Restart(open, keeps, serves(gadgetKind[gadget1]("v1", nil)))
		back := map[string]any{"more": map[string]any{"a": "b"}, "parts": []any{map[string]any{"name": "p"}}}
		assert.Equal(t, back, apitest.SpecOf(a.Must(200, "GET", storedGadgets+"/g", nil)), "what the release before does not know is not shown")
		now := a.Must(200, "PATCH", storedGadgets+"/g", `{"metadata":{"labels":{"x":"y"}},"spec":{"note":"hello","more":{"c":"d"}}}`)
		put := now.Body
		put["spec"].(map[string]any)["parts"] = []any{map[string]any{"name": "q", "old": "o"}, map[string]any{"name": "p", "old": "o"}}
		a.Must(200, "PUT", storedGadgets+"/g", put)

		s.Restart(open, serves(gadgetKind[gadget2]("v1", func(o *meta.Object) error {
			for _, part := range o.Objects("spec", "parts") {
				part.Delete("old")
			}
			return upgradeGadget(o)
		})))
		assert.Equal(t, map[string]any{"size": "3", "colour": "red", "level": 7.0, "more": map[string]any{"a": "b", "c": "d"},
			"parts": []any{map[string]any{"name": "q"}, map[string]any{"name": "p", "new": "n"}}}, apitest.SpecOf(a.Must(200, "GET", storedGadgets+"/g", nil)),
			"and is there again afterwards")
	})
}

// TestRollbackToAKnownRelease: a release that has served the store before starts although a newer
// release stored fields that it does not have.
func TestRollbackToAKnownRelease(t *testing.T) {
	t.Parallel()
	type older struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Size int32 `json:"size,omitempty"`
		} `json:"spec"`
	}
	onReleases(t, func(t *testing.T, open func(*server.Builder)) {
		s := servertest.New(t, open, serves(gadgetKind[older]("v1", nil)))
		a := apitest.InProcess(t, s)
		s.Restart(open, serves(gadgetKind[gadget1]("v1", nil)))
		a.Must(201, "POST", storedGadgets, newGadget("g", map[string]any{"size": 3, "color": "red"}))
		s.Restart(open, serves(gadgetKind[older]("v1", nil)))
		assert.Equal(t, map[string]any{"size": 3.0}, apitest.SpecOf(a.Must(200, "GET", storedGadgets+"/g", nil)))
		var all sync.WaitGroup
		for i := range 20 { // in each other's wake, so that some are committed in one sequence
			all.Go(func() {
				assert.Equal(t, 200, a.Do("PATCH", storedGadgets+"/g", fmt.Sprintf(`{"metadata":{"labels":{"l%d":"x"}},"spec":{"size":%d}}`, i, i+10)).Code)
			})
		}
		all.Wait()
		s.Restart(open, serves(gadgetKind[gadget1]("v1", nil)))
		got := a.Must(200, "GET", storedGadgets+"/g", nil)
		assert.Equal(t, "red", apitest.NestedString(got.Body, "spec", "color"))
		assert.Len(t, apitest.Nested(got.Body, "metadata", "labels"), 20)
	})
}

// TestIncompatibleObjectsCanBeRepairedAndDeleted: an object that no longer fits its kind can lose
// a finalizer by every verb, be repaired and deleted, and a namespace with such objects can be
// deleted.
func TestIncompatibleObjectsCanBeRepairedAndDeleted(t *testing.T) {
	t.Parallel()
	onReleases(t, func(t *testing.T, open func(*server.Builder)) {
		s := servertest.New(t, open, serves(gadgetKind[gadget1]("v1", nil)))
		a := apitest.InProcess(t, s)
		a.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "ns"}})
		for _, name := range []string{"patched", "put", "applied", "deleted", "mended"} {
			a.Must(201, "POST", storedGadgets, newGadget(name, map[string]any{"size": 3}, "finalizers", []any{"example.com/hold"}))
		}
		a.Must(201, "POST", "/apis/example.com/v1/namespaces/ns/gadgets", newGadget("g", map[string]any{"size": 3}))

		type strict struct {
			meta.TypeMeta   `json:",inline"`
			meta.ObjectMeta `json:"metadata"`
			Spec            struct {
				Size  string `json:"size" schema:"required,minLength=1"`
				Color string `json:"color,omitempty"`
			} `json:"spec"`
		}
		k := registry.Of(registry.Definition[strict]{Group: "example.com", Version: "v1", Kind: "Gadget", Validate: func(w *registry.Change[strict]) {
			if w.New.Spec.Color == "" {
				w.Required(check.At("spec").Field("color"), "")
			}
		}})
		s.Restart(open, keeps, serves(k))
		a.Must(422, "PATCH", storedGadgets+"/patched", `{"spec":{"color":"red"}}`)
		a.Must(200, "PATCH", storedGadgets+"/patched", `{"metadata":{"finalizers":null}}`)
		put := a.Must(200, "GET", storedGadgets+"/put", nil).Body
		delete(put["metadata"].(map[string]any), "finalizers")
		a.Must(200, "PUT", storedGadgets+"/put", put)
		a.Must(200, "PATCH", storedGadgets+"/applied?fieldManager=m&force=true",
			`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"applied","labels":{"a":"b"}}}`, "Content-Type", "application/apply-patch+yaml")
		a.Must(200, "DELETE", storedGadgets+"/deleted", nil)
		a.Must(200, "PATCH", storedGadgets+"/deleted", `[{"op":"remove","path":"/metadata/finalizers"}]`, "Content-Type", "application/json-patch+json")
		a.Must(404, "GET", storedGadgets+"/deleted", nil)
		a.Must(200, "PATCH", storedGadgets+"/mended", `{"spec":{"size":"large","color":"red"}}`)
		a.Must(200, "DELETE", "/api/v1/namespaces/ns", nil)
		s.Settle()
		a.Must(404, "GET", "/api/v1/namespaces/ns", nil)

		s.Restart(open, keeps, serves(gadgetKind[gadget1]("v1", nil)))
		for name, size := range map[string]any{"patched": 3.0, "put": 3.0, "applied": 3.0, "mended": nil} {
			assert.Equal(t, size, apitest.SpecOf(a.Must(200, "GET", storedGadgets+"/"+name, nil))["size"], name)
		}
	})
}

// TestReleasesSideBySide: servers of two releases over one store keep each other's fields.
func TestReleasesSideBySide(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	type newer struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Size  int32             `json:"size,omitempty"`
			Color string            `json:"color,omitempty"`
			Note  string            `json:"note,omitempty"`
			Parts []gadgetPart1     `json:"parts,omitempty" schema:"listType=map,listMapKeys=name"`
			More  map[string]string `json:"more,omitempty"`
			Level int32             `json:"level,omitempty"`
		} `json:"spec"`
	}
	one := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[gadget1]("v1", nil))))
	one.Must(201, "POST", storedGadgets, newGadget("g", map[string]any{"color": "red"}))
	two := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[newer]("v1", nil))))
	two.Must(200, "PATCH", storedGadgets+"/g", `{"spec":{"level":5}}`)
	for i := range 5 {
		one.Must(200, "PATCH", storedGadgets+"/g", fmt.Sprintf(`{"spec":{"size":%d}}`, i+1))
		assert.Equal(t, 5.0, apitest.Nested(two.Must(200, "GET", storedGadgets+"/g", nil).Body, "spec", "level"))
		assert.Nil(t, apitest.Nested(one.Must(200, "GET", storedGadgets+"/g", nil).Body, "spec", "level"))
	}
}

// TestBuildFailsIfTheStoreCannotBeRead: Build fails, and writes nothing, if the store cannot be
// read.
func TestBuildFailsIfTheStoreCannotBeRead(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[gadget1]("v1", nil)))
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", storedGadgets, newGadget("g", map[string]any{"note": "n", "color": "red"}))
	broken := &unreadable{Store: store}
	b := apitest.InProcess(t, servertest.New(t, keeps, apitest.WithStorage(broken), serves(gadgetKind[gadget2]("v1", nil))))
	broken.fails = true
	b.Must(500, "PATCH", storedGadgets+"/g", `{"spec":{"level":5}}`)
	broken.fails = false
	b.Must(200, "PATCH", storedGadgets+"/g", `{"spec":{"level":5}}`)
}

type unreadable struct {
	*memstore.Store
	fails bool
}

func (*unreadable) Close() error { return nil }

func (u *unreadable) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	if u.fails && key == "gadgets.example.com/default/g" {
		return storage.Record{}, errors.New("the disk is gone")
	}
	return u.Store.Get(ctx, key, at)
}
