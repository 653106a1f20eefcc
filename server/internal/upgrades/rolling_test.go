package upgrades_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/storagemigration"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestWriteOfThePreviousReleaseDuringStart: a commit that a server of the previous release sends
// while the next release starts is read in its stored version and keeps all fields.
func TestWriteOfThePreviousReleaseDuringStart(t *testing.T) {
	t.Parallel()
	apitest.OnSharedStores(t, func(t *testing.T, store storage.Backend) {
		held := apitest.NewBlockingStore(store, "gadgets.example.com/default/g")
		one := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(held), serves(gadgetKind[gadget1]("v1", nil))))
		var writer sync.WaitGroup
		writer.Go(func() {
			got := one.Do("POST", storedGadgets, newGadget("g", map[string]any{"size": 3, "note": "n"}))
			assert.Equal(t, 201, got.Code)
		})
		<-held.Arrived
		second := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(gadgetKind[gadget2]("v1", nil)))
		two := apitest.InProcess(t, second)
		close(held.Release)
		writer.Wait()
		assert.Equal(t, map[string]any{"level": 3.0}, apitest.SpecOf(two.Must(200, "GET", storedGadgets+"/g", nil)))
		two.Must(200, "PATCH", storedGadgets+"/g", `{"spec":{"level":5}}`)
		assert.Equal(t, map[string]any{"size": 3.0, "note": "n"}, apitest.SpecOf(one.Must(200, "GET", storedGadgets+"/g", nil)))
		second.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(gadgetKind[gadget2]("v1", nil)))
		assert.Equal(t, map[string]any{"level": 5.0}, apitest.SpecOf(two.Must(200, "GET", storedGadgets+"/g", nil)))
	})
}

// TestEndedMigrationStays: if two servers execute the same migration, the slower server does not change
// the result that the faster server wrote.
func TestEndedMigrationStays(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	first := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[gadget1]("v1", nil)))
	apitest.InProcess(t, first).Must(201, "POST", storedGadgets, newGadget("g", map[string]any{"size": 3, "color": "red"}))
	kinds := serves(append(storagemigration.Kinds(), gadgetKind[gadget2]("v1", upgradeGadget))...)
	held := apitest.NewBlockingStore(store, "gadgets.example.com/default/g")
	first.Restart(apitest.WithStorage(held), kinds)
	one := apitest.InProcess(t, first)
	one.Must(201, "POST", migrations, newMigration("m", "example.com", "gadgets"))
	<-held.Arrived // it migrates
	second := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), kinds)
	two := apitest.InProcess(t, second)
	second.Settle()
	ended := two.Must(200, "GET", migrations+"/m", nil)
	require.Contains(t, string(ended.Raw), `"1 of 1 objects were stored anew"`)
	close(held.Release)
	first.Settle()
	assert.Equal(t, ended.ResourceVersion(), one.Must(200, "GET", migrations+"/m", nil).ResourceVersion())
}

// TestMigrateWaitsForRunningMigration: Migrate waits for a migration that is running.
func TestMigrateWaitsForRunningMigration(t *testing.T) {
	t.Parallel()
	store, s, _ := storedGadgetsOfOne(t, 1200)
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[gadget2]("v1", upgradeGadget)))
	var mu sync.Mutex
	var told strings.Builder
	var all sync.WaitGroup
	for _, who := range []string{"a", "b"} {
		all.Go(func() {
			assert.NoError(t, s.Migrate(t.Context(), func(m server.Migration) {
				if m.Resource == (meta.GroupResource{Group: "example.com", Resource: "gadgets"}) {
					mu.Lock()
					defer mu.Unlock()
					told.WriteString(who)
				}
			}))
		})
	}
	all.Wait()
	assert.Contains(t, []string{"aaabbb", "bbbaaa"}, told.String())
}

const migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"

func newMigration(name, group, resource string) map[string]any {
	return map[string]any{"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"resource": map[string]any{"group": group, "resource": resource}}}
}

const customDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definedThings returns the definition of things.example.org with two versions and the given storage version.
func definedThings(stored string) map[string]any {
	var versions []any
	for _, name := range []string{"v1", "v2"} {
		versions = append(versions, map[string]any{"name": name, "served": true, "storage": name == stored,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
	}
	return map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things.example.org"},
		"spec": map[string]any{"group": "example.org", "scope": "Namespaced", "names": map[string]any{"plural": "things", "kind": "Thing"}, "versions": versions}}
}

// TestWriteDuringMigrationUsesNewStorageVersion: a write that began with the former storage
// version is stored in the new storage version when it is acknowledged.
func TestWriteDuringMigrationUsesNewStorageVersion(t *testing.T) {
	t.Parallel()
	apitest.OnSharedStores(t, func(t *testing.T, store storage.Backend) {
		const key = "things.example.org/default/a"
		held := apitest.NewBlockingStore(store, key)
		first := servertest.New(t, apitest.WithStorage(held))
		one := apitest.InProcess(t, first)
		one.Must(201, "POST", customDefinitions, definedThings("v1"))
		first.Settle()
		var writer sync.WaitGroup
		writer.Go(func() {
			got := one.Do("POST", "/apis/example.org/v1/namespaces/default/things", `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"a":1}}`)
			assert.Equal(t, 201, got.Code)
		})
		<-held.Arrived
		second := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
		two := apitest.InProcess(t, second)
		two.Must(200, "PATCH", customDefinitions+"/things.example.org", map[string]any{"spec": definedThings("v2")["spec"]})
		require.NoError(t, second.Migrate(t.Context(), nil))
		require.Equal(t, []any{"v2"}, apitest.Nested(two.Must(200, "GET", customDefinitions+"/things.example.org", nil).Body, "status", "storedVersions"))
		close(held.Release)
		writer.Wait()
		rec, err := store.Get(t.Context(), key, 0)
		require.NoError(t, err)
		assert.Equal(t, "example.org/v2", apitest.ParseObject(t, string(rec.Value))["apiVersion"])
	})
}

// TestMigrationDuringMigrationUsesNewStorageVersion: an object that a migration to the former
// version was about to store is stored in the new storage version.
func TestMigrationDuringMigrationUsesNewStorageVersion(t *testing.T) {
	t.Parallel()
	apitest.OnSharedStores(t, func(t *testing.T, store storage.Backend) {
		const key = "things.example.org/default/a"
		const definition = customDefinitions + "/things.example.org"
		first := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
		one := apitest.InProcess(t, first)
		one.Must(201, "POST", customDefinitions, definedThings("v2"))
		first.Settle()
		one.Must(201, "POST", "/apis/example.org/v1/namespaces/default/things", `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"a"}}`)
		one.Must(200, "PATCH", definition, map[string]any{"spec": definedThings("v1")["spec"]})
		held := apitest.NewBlockingStore(store, key)
		first.Restart(apitest.WithStorage(held))
		var migration sync.WaitGroup
		migration.Go(func() { assert.ErrorContains(t, first.Migrate(t.Context(), nil), "the definition changed meanwhile") })
		<-held.Arrived
		second := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
		two := apitest.InProcess(t, second)
		two.Must(200, "PATCH", definition, map[string]any{"spec": definedThings("v2")["spec"]})
		require.NoError(t, second.Migrate(t.Context(), nil))
		require.Equal(t, []any{"v2"}, apitest.Nested(two.Must(200, "GET", definition, nil).Body, "status", "storedVersions"))
		close(held.Release)
		migration.Wait()
		rec, err := store.Get(t.Context(), key, 0)
		require.NoError(t, err)
		assert.Equal(t, "example.org/v2", apitest.ParseObject(t, string(rec.Value))["apiVersion"])
		require.Equal(t, []any{"v2"}, apitest.Nested(two.Must(200, "GET", definition, nil).Body, "status", "storedVersions"))
	})
}

// TestDefinitionChangesDuringMigration: if the definition changes during a migration, storedVersions is
// not reduced to one version.
func TestDefinitionChangesDuringMigration(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", customDefinitions, definedThings("v1"))
	s.Settle()
	a.Must(201, "POST", "/apis/example.org/v1/namespaces/default/things", `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"a"}}`)
	err := s.Migrate(t.Context(), func(m server.Migration) {
		if m.Resource.Resource == "things" {
			a.Must(200, "PATCH", customDefinitions+"/things.example.org", map[string]any{"spec": definedThings("v2")["spec"]})
		}
	})
	require.ErrorContains(t, err, "things.example.org: the definition changed meanwhile")
	assert.Equal(t, []any{"v1", "v2"}, apitest.Nested(a.Must(200, "GET", customDefinitions+"/things.example.org", nil).Body, "status", "storedVersions"))
	require.NoError(t, s.Migrate(t.Context(), nil))
	assert.Equal(t, []any{"v2"}, apitest.Nested(a.Must(200, "GET", customDefinitions+"/things.example.org", nil).Body, "status", "storedVersions"))
}

// TestMigrationCutOff: if a migration is interrupted at any point, the next one continues it, and
// reported progress is never lost.
func TestMigrationCutOff(t *testing.T) {
	t.Parallel()
	store, s, _ := storedGadgetsOfOne(t, 1200)
	two := serves(gadgetKind[gadget2]("v1", upgradeGadget))
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), two)
	var at []*memstore.Store
	var told []server.Migration
	require.NoError(t, s.Migrate(t.Context(), func(m server.Migration) {
		if m.Resource.Resource == "gadgets" {
			at, told = append(at, store.Fork()), append(told, m)
		}
	}))
	require.Len(t, at, 3)
	for i, fork := range at {
		t.Cleanup(func() { _ = fork.Close() })
		anew := 0
		for n := range 1200 {
			if _, ok := apitest.StoredObject(t, fork, fmt.Sprintf("gadgets.example.com/default/g%04d", n))["spec"].(map[string]any)["colour"]; ok {
				anew++
			}
		}
		assert.Equal(t, told[i].Done, anew)
		assert.Equal(t, told[i].Done, told[i].Rewritten)
		s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: fork}), two)
		rest := 0
		require.NoError(t, s.Migrate(t.Context(), func(m server.Migration) {
			if m.Resource.Resource == "gadgets" {
				rest = m.Rewritten
			}
		}))
		assert.Equal(t, 1200-anew, rest)
	}
}

// Gadgets with a hub that has more fields than the storage version.
type (
	plainGadget struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int32 `json:"size,omitempty"`
	}
	leveledGadget struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int32 `json:"size,omitempty"`
		Level           int32 `json:"level,omitempty"`
	}
)

// TestRefusedWriteDoesNotFailItsBatch: a change that the storage version cannot represent is
// refused, and the other writes of its batch are committed.
func TestRefusedWriteDoesNotFailItsBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const key = "gadgets.example.com/default/g"
		kind := registry.Of(registry.Definition[leveledGadget]{
			Group: "example.com", Version: "v2", Kind: "Gadget", Storage: "v1",
			Versions: []registry.VersionOf[leveledGadget]{registry.Spoke[plainGadget, leveledGadget]{Version: "v1",
				ToHub: func(o *plainGadget, h *leveledGadget) error { h.Size = o.Size; return nil },
				FromHub: func(h *leveledGadget, o *plainGadget) error {
					if h.Level == 13 {
						return errors.New("level: nobody has it")
					}
					o.Size = h.Size
					return nil
				},
			}},
		})
		mem := memstore.New(memstore.Options{})
		_, err := mem.Commit(t.Context(), storage.Write{Key: key, Value: []byte(
			`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"default","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},"size":3,"future":"kept"}`)})
		require.NoError(t, err)
		store := faultinject.Wrap(mem, nil)
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), keeps, serves(kind)))
		const gadget = "/apis/example.com/v2/namespaces/default/gadgets/g"
		store.SetPlan(func(call faultinject.Call) faultinject.Fault {
			if call.Op == faultinject.OpCommit && call.Key == key {
				return faultinject.Fault{Delay: time.Second}
			}
			return faultinject.Fault{}
		})
		var all sync.WaitGroup
		defer all.Wait()
		for i := range 2 { // one wins, the other queues
			all.Go(func() { a.Must(200, "PATCH", gadget, fmt.Sprintf(`{"metadata":{"labels":{"c%d":"1"}}}`, i)) })
		}
		time.Sleep(1500 * time.Millisecond)
		all.Go(func() {
			refused := a.Must(422, "PATCH", gadget, `{"level":13}`)
			assert.Contains(t, string(refused.Raw), "cannot hold the change")
		})
		time.Sleep(time.Millisecond)
		got := a.Must(200, "PATCH", gadget, `{"level":5}`)
		assert.Equal(t, map[string]any{"c0": "1", "c1": "1"}, apitest.Nested(got.Body, "metadata", "labels"))
		all.Wait()
		got = a.Must(200, "GET", gadget, nil)
		assert.EqualValues(t, []any{3.0, 5.0}, []any{got.Body["size"], got.Body["level"]})
		rec, err := mem.Get(t.Context(), key, 0)
		require.NoError(t, err)
		assert.Equal(t, "kept", apitest.ParseObject(t, string(rec.Value))["future"])
	})
}
