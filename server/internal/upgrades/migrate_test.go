package upgrades_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/storagemigration"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// storedGadgetsOfOne fills a store with n gadgets of the first release.
func storedGadgetsOfOne(t *testing.T, n int) (*memstore.Store, *servertest.Server, *apitest.Client) {
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[gadget1]("v1", nil)))
	a := apitest.InProcess(t, s)
	for i := range n {
		a.Must(201, "POST", storedGadgets, newGadget(fmt.Sprintf("g%04d", i), map[string]any{"color": "red", "note": "n"}))
	}
	return store, s, a
}

func TestMigrateConvertsStoredObjects(t *testing.T) {
	t.Parallel()
	store, s, a := storedGadgetsOfOne(t, 1200)
	var upgrades atomic.Int64
	two := gadgetKind[gadget2]("v1", func(o *meta.Object) error {
		upgrades.Add(1)
		return upgradeGadget(o)
	})
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(two))
	before := a.Must(200, "GET", storedGadgets, nil)

	ctx, cancel := context.WithCancel(t.Context())
	err := s.Migrate(ctx, func(m server.Migration) {
		if m.Resource.Resource == "gadgets" {
			cancel() // after the first page
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	var last server.Migration
	require.NoError(t, s.Migrate(t.Context(), func(m server.Migration) {
		if m.Resource.Resource == "gadgets" {
			assert.Less(t, last.Done, m.Done)
			last = m
		}
	}))
	assert.Equal(t, 1200, last.Done)
	assert.Equal(t, 1200, last.Total)
	assert.Equal(t, 700, last.Rewritten, "the others were before")
	assert.Zero(t, last.Kept)
	assert.Equal(t, map[string]any{"colour": "red", "level": 3.0}, apitest.StoredObject(t, store, "gadgets.example.com/default/g0007")["spec"])
	after := a.Must(200, "GET", storedGadgets, nil)
	for i, item := range apitest.Nested(after.Body, "items").([]any) {
		assert.Equal(t, apitest.Nested(before.Body, "items").([]any)[i].(map[string]any)["spec"], item.(map[string]any)["spec"])
	}

	upgrades.Store(0)
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(two))
	a.Must(200, "PATCH", storedGadgets+"/g0000", `{"spec":{"level":9}}`)
	assert.Zero(t, upgrades.Load(), "nothing is looked at again")
	again := last
	require.NoError(t, s.Migrate(t.Context(), func(m server.Migration) { again = m }))
	assert.Zero(t, again.Rewritten)
}

// TestMigrateKeeps: a migration keeps the values that the present types do not show and counts their
// objects as Kept; the older release shows the values again.
func TestMigrateKeeps(t *testing.T) {
	t.Parallel()
	store, s, a := storedGadgetsOfOne(t, 3)
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), keeps, serves(gadgetKind[gadget2]("v1", nil)))
	var last server.Migration
	require.NoError(t, s.Migrate(t.Context(), func(m server.Migration) {
		if m.Resource.Resource == "gadgets" {
			last = m
		}
	}))
	last.Rate = 0
	assert.Equal(t, server.Migration{Resource: meta.GroupResource{Group: "example.com", Resource: "gadgets"}, Done: 3, Total: 3, Kept: 3}, last)
	assert.Equal(t, map[string]any{"color": "red", "note": "n"}, apitest.StoredObject(t, store, "gadgets.example.com/default/g0000")["spec"])
	assert.Equal(t, map[string]any{"level": 3.0}, apitest.SpecOf(a.Must(200, "GET", storedGadgets+"/g0000", nil)))
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(gadgetKind[gadget1]("v1", nil)))
	assert.Equal(t, map[string]any{"color": "red", "note": "n"}, apitest.SpecOf(a.Must(200, "GET", storedGadgets+"/g0000", nil)))
}

// TestMigrateStorageVersion: Migrate converts objects to another storage version of a kind with
// conversions.
func TestMigrateStorageVersion(t *testing.T) {
	t.Parallel()
	type old struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Host            string `json:"host,omitempty"`
	}
	kind := func(stored string) *registry.Kind {
		return registry.Of(registry.Definition[apitest.Site]{
			Group: "example.com", Version: "v1", Storage: stored,
			Versions: []registry.VersionOf[apitest.Site]{registry.Spoke[old, apitest.Site]{
				Version: "v1beta1",
				ToHub:   func(in *old, out *apitest.Site) error { out.Spec.Host = in.Host; return nil },
				FromHub: func(in *apitest.Site, out *old) error { out.Host = in.Spec.Host; return nil },
			}},
		})
	}
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(kind("v1beta1")))
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.SitesPath, map[string]any{"apiVersion": "example.com/v1", "kind": "Site", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"host": "h"}})
	require.Equal(t, "h", apitest.StoredObject(t, store, "sites.example.com/default/a")["host"])
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(kind("v1")))
	assert.Equal(t, "h", apitest.Nested(a.Must(200, "GET", apitest.SitesPath+"/a", nil).Body, "spec", "host"))
	require.NoError(t, s.Migrate(t.Context(), nil))
	assert.Equal(t, "example.com/v1", apitest.StoredObject(t, store, "sites.example.com/default/a")["apiVersion"])
	s.Restart(apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(kind("v1beta1")))
	assert.Equal(t, "h", apitest.Nested(a.Must(200, "GET", apitest.SitesPath+"/a", nil).Body, "spec", "host"), "and back")
}

func TestMigrateDefinitions(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = store.Close() })
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), serves(storagemigration.Kinds()...))
	a := apitest.InProcess(t, s)
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	version := func(name string, stored bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": stored,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}}}}}
	}
	a.Must(201, "POST", definitions, map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things.example.org"},
		"spec": map[string]any{"group": "example.org", "scope": "Namespaced", "names": map[string]any{"plural": "things", "kind": "Thing"}, "versions": []any{version("v1", true)}}})
	s.Settle()
	const things = "/apis/example.org/v1/namespaces/default/things"
	for i := range 3 {
		a.Must(201, "POST", things, map[string]any{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"name": fmt.Sprint("t", i)}, "spec": map[string]any{"a": "b"}})
	}
	a.Must(200, "PATCH", definitions+"/things.example.org", map[string]any{"spec": map[string]any{"versions": []any{version("v1", false), version("v2", true)}}})
	require.Equal(t, []any{"v1", "v2"}, apitest.Nested(a.Must(200, "GET", definitions+"/things.example.org", nil).Body, "status", "storedVersions"))
	drop := map[string]any{"spec": map[string]any{"versions": []any{version("v2", true)}}}
	a.Must(422, "PATCH", definitions+"/things.example.org", drop)

	const migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
	ask := func(name, group, resource string) {
		a.Must(201, "POST", migrations, map[string]any{"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"resource": map[string]any{"group": group, "resource": resource}}})
	}
	ask("things", "example.org", "things")
	s.Settle()
	conditions := func(name string) (list []string) {
		for _, c := range apitest.Nested(a.Must(200, "GET", migrations+"/"+name, nil).Body, "status", "conditions").([]any) {
			list = append(list, apitest.NestedString(c, "type")+" "+apitest.NestedString(c, "status")+": "+apitest.NestedString(c, "message"))
		}
		return list
	}
	assert.Equal(t, []string{"Running False: 3 of 3 objects were stored anew", "Succeeded True: 3 of 3 objects were stored anew"}, conditions("things"))
	assert.Equal(t, "example.org/v2", apitest.StoredObject(t, store, "things.example.org/default/t1")["apiVersion"])
	assert.Equal(t, []any{"v2"}, apitest.Nested(a.Must(200, "GET", definitions+"/things.example.org", nil).Body, "status", "storedVersions"))
	a.Must(200, "PATCH", definitions+"/things.example.org", drop)
	a.Must(422, "PATCH", migrations+"/things", `{"spec":{"resource":{"resource":"pods"}}}`)
}

// slowCommits is a store with commits that take 10 ms.
type slowCommits struct{ apitest.KeepOpen }

func (s slowCommits) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	time.Sleep(10 * time.Millisecond)
	return s.KeepOpen.Commit(ctx, ws...)
}

// TestMigrationProgress checks that the progress of a migration has the figures of the other long commands, in
// the callback and in the status of a StorageVersionMigration.
func TestMigrationProgress(t *testing.T) {
	t.Parallel()
	const want = "500 of 1200 objects (41%), 100/s, 7s left"
	slow := func(t *testing.T) *servertest.Server {
		store, s, _ := storedGadgetsOfOne(t, 1200)
		s.Restart(apitest.WithStorage(slowCommits{apitest.KeepOpen{Backend: store}}), serves(append(storagemigration.Kinds(), gadgetKind[gadget2]("v1", upgradeGadget))...))
		return s
	}
	synctest.Test(t, func(t *testing.T) {
		var told []string
		require.NoError(t, slow(t).Migrate(t.Context(), func(m server.Migration) { told = append(told, m.String()) }))
		assert.Contains(t, told, want)
		assert.Contains(t, told, "1200 of 1200 objects (100%), 100/s")
	})
	synctest.Test(t, func(t *testing.T) {
		a := apitest.InProcess(t, slow(t))
		w := a.Watch(migrations + "?watch=1")
		defer w.Close()
		a.Must(201, "POST", migrations, `{"metadata":{"name":"m"},"spec":{"resource":{"group":"example.com","resource":"gadgets"}}}`)
		var told []any
		for !slices.Contains(told, any("True")) {
			told = nil
			list, _ := apitest.Nested(w.Next().Object, "status", "conditions").([]any)
			for _, c := range list {
				if apitest.Nested(c, "type") == "Succeeded" {
					require.Fail(t, "the migration ended", "%v", list)
				}
				if apitest.Nested(c, "message") == want {
					told = append(told, apitest.Nested(c, "status"))
				}
			}
		}
	})
}
