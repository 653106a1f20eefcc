package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

// notUnsafe allows everything except deleting unreadable objects.
type notUnsafe struct{ denied string }

func (n *notUnsafe) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if a.Verb == n.denied {
		return auth.Deny, "not that", nil
	}
	return auth.Allow, "", nil
}

func someMap(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"of": name}}
}

// TestUnreadableObject: every verb on an object that the store cannot read returns its own 500. The error of a list
// names the object. All other objects are served. A user with the right can delete and recreate the object.
func TestUnreadableObject(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	mem := memstore.New(memstore.Options{})
	maps := "/api/v1/namespaces/default/configmaps"
	seedServer := servertest.New(t, func(b *server.Builder) { b.Storage = faultinject.Wrap(apitest.KeepOpen{Backend: mem}, nil) })
	seed := apitest.InProcess(t, seedServer)
	for _, name := range []string{"a", "bad", "c"} {
		require.Equal(t, 201, seed.Do("POST", maps, someMap(name)).Code)
	}
	before := seed.Do("GET", maps, nil).Body["metadata"].(map[string]any)["resourceVersion"].(string)

	gate := &notUnsafe{denied: "unsafe-delete-ignore-read-errors"}
	store := faultinject.Wrap(mem, func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpRecord && strings.HasSuffix(c.Key, "/default/bad") {
			return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: c.At, Err: errors.New("spoilt")}}
		}
		return faultinject.Fault{}
	})
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage, b.Authorizer = store, gate }))
	bad := maps + "/bad"
	for _, path := range []string{bad, maps, "/api/v1/configmaps", maps + "?watch=true", maps + "?fieldSelector=metadata.name%3Dbad",
		maps + "?limit=1", maps + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"} {
		got := a.Do("GET", path, nil)
		require.Equal(t, 500, got.Code, "%s: %s", path, got.Raw)
		require.Equal(t, "Status", got.Body["kind"])
		require.Contains(t, string(got.Raw), "default/bad")
		require.Contains(t, string(got.Raw), "damaged")
	}
	require.Equal(t, 500, a.Do("PUT", bad, someMap("bad")).Code)
	require.Equal(t, 500, a.Do("POST", maps, someMap("bad")).Code)
	require.Equal(t, 500, a.Do("DELETE", maps, nil).Code)
	for _, name := range []string{"a", "c"} {
		require.Equal(t, name, a.Do("GET", maps+"/"+name, nil).Body["data"].(map[string]any)["of"])
	}
	require.Equal(t, 200, a.Do("GET", "/api/v1/namespaces/other/configmaps", nil).Code)
	require.Equal(t, 200, a.Do("GET", maps+"?fieldSelector=metadata.name%3Da", nil).Code)
	require.Equal(t, 201, a.Do("POST", maps, someMap("new")).Code)

	require.Equal(t, 403, a.Do("DELETE", bad, nil).Code)
	gate.denied = ""
	require.Equal(t, 409, a.Do("DELETE", bad, map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": map[string]any{"uid": "x"}}).Code)
	require.Equal(t, 200, a.Do("DELETE", bad+"?dryRun=All", nil).Code)
	require.Equal(t, 500, a.Do("GET", bad, nil).Code)
	require.Equal(t, 200, a.Do("DELETE", bad, nil).Code)
	require.Equal(t, 404, a.Do("GET", bad, nil).Code)
	require.Equal(t, 200, a.Do("GET", maps, nil).Code)
	require.Equal(t, 201, a.Do("POST", maps, someMap("bad")).Code)
	require.Equal(t, "bad", a.Do("GET", bad, nil).Body["data"].(map[string]any)["of"])
	// The deleted object is unknown, so its watches must start again.
	got := a.Do("GET", maps+"?watch=true&timeoutSeconds=1&resourceVersion="+before, nil)
	require.Contains(t, string(got.Raw), "too old resource version")
	_, err := store.Get(ctx, "configmaps/default/bad", 0)
	require.NoError(t, err)
}

// TestUnreadableObjectKeepsNamespaceAndDefinition: an unreadable object keeps its namespace, or its definition, until
// it is deleted. The other objects there are deleted, and the conditions show what remains.
func TestUnreadableObjectKeepsNamespaceAndDefinition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const widgets = "/apis/sea.example.com/v1/widgets"
		const definition = apitest.DefinitionsPath + "/widgets.sea.example.com"
		mem := memstore.New(memstore.Options{})
		seedServer := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: mem}))
		seed := apitest.InProcess(t, seedServer)
		seed.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "ends"}})
		seed.Must(201, "POST", apitest.DefinitionsPath, boatDefinition("widgets", "Widget"))
		seedServer.Settle()
		for _, name := range []string{"a", "bad", "c"} {
			seed.Must(201, "POST", "/api/v1/namespaces/ends/configmaps", someMap(name))
			seed.Must(201, "POST", widgets, map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}})
		}
		require.NoError(t, seedServer.Shutdown(t.Context()))
		s := servertest.New(t, apitest.WithStorage(faultinject.Wrap(apitest.KeepOpen{Backend: mem}, func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpRecord && strings.HasSuffix(c.Key, "/bad") {
				return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: c.At, Err: errors.New("spoilt")}}
			}
			return faultinject.Fault{}
		})))
		a := apitest.InProcess(t, s)
		for _, path := range []string{"/api/v1/namespaces/ends", definition} {
			a.Must(200, "DELETE", path, nil)
		}
		time.Sleep(time.Minute)
		for path, message := range map[string]string{"/api/v1/namespaces/ends": "ends/bad", definition: "1 objects of this kind are left"} {
			got := a.Must(200, "GET", path, nil)
			require.Contains(t, string(got.Raw), message)
		}
		for _, list := range []string{"/api/v1/namespaces/ends/configmaps", widgets} {
			a.Must(404, "GET", list+"/a", nil)
			a.Must(404, "GET", list+"/c", nil)
			a.Must(500, "GET", list+"/bad", nil)
			a.Must(200, "DELETE", list+"/bad", nil)
		}
		time.Sleep(time.Minute)
		a.Must(404, "GET", "/api/v1/namespaces/ends", nil)
		a.Must(404, "GET", definition, nil)
	})
}

// TestUndeletableObjectKeepsNamespace: an object that admission refuses to delete keeps its namespace, but no other
// object there. The conditions show the reason, and their text, which varies, does not keep the controller busy.
func TestUndeletableObjectKeepsNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const widgets = "/apis/sea.example.com/v1/widgets"
		const definition, namespace = apitest.DefinitionsPath + "/widgets.sea.example.com", "/api/v1/namespaces/ends"
		lists := []string{namespace + "/configmaps", namespace + "/secrets", widgets}
		var refused atomic.Int64
		var open atomic.Bool
		s := servertest.New(t, func(b *server.Builder) {
			b.Admission = append(b.Admission, refuser(func(name string) error {
				if name != "bad" || open.Load() {
					return nil
				}
				return fmt.Errorf("refused %d times", refused.Add(1))
			}))
		})
		a := apitest.InProcess(t, s)
		a.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "ends"}})
		a.Must(201, "POST", apitest.DefinitionsPath, boatDefinition("widgets", "Widget"))
		s.Settle()
		for _, name := range []string{"a", "bad", "c"} {
			for i, kind := range []string{"ConfigMap", "Secret", "Widget"} {
				body := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}
				if kind == "Widget" {
					body["apiVersion"] = "sea.example.com/v1"
				}
				a.Must(201, "POST", lists[i], body)
			}
		}
		a.Must(200, "DELETE", namespace, nil)
		a.Must(200, "DELETE", definition, nil)
		time.Sleep(time.Minute)
		require.Less(t, refused.Load(), int64(200))
		for _, list := range lists[:2] {
			require.Equal(t, []string{"bad"}, a.Must(200, "GET", list, nil).Names())
		}
		require.Equal(t, 404, a.Do("GET", widgets, nil).Code, "admission does not run for the objects of a deleted definition")
		a.Must(404, "GET", definition, nil)
		conditions := map[string]string{}
		for _, c := range apitest.Nested(a.Must(200, "GET", namespace, nil).Body, "status", "conditions").([]any) {
			conditions[apitest.NestedString(c, "type")+" "+apitest.NestedString(c, "status")] = apitest.NestedString(c, "message")
		}
		require.Contains(t, conditions["NamespaceContentRemaining True"], "configmaps has 1 resource instances secrets has 1 resource instances")
		require.Regexp(t, `^Failed to delete all resource types, 2 remaining: deleting configmaps in ends: .*refused .*, deleting secrets in ends: .*refused`,
			strings.ReplaceAll(conditions["NamespaceDeletionContentFailure True"], "\n", ""))
		open.Store(true)
		time.Sleep(10 * time.Minute)
		a.Must(404, "GET", namespace, nil)
	})
}

// TestDamagedDirectory: a server over a directory with a damaged object starts and serves all other objects. A health
// check and a metric report the object until it is deleted.
func TestDamagedDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	maps := "/api/v1/namespaces/default/configmaps"
	serve := func() (*apitest.Client, func()) {
		store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
		require.NoError(t, err)
		s := servertest.New(t, func(b *server.Builder) { b.Storage = store })
		return apitest.InProcess(t, s), func() { require.NoError(t, s.Shutdown(context.Background())) }
	}
	large := func(name string) map[string]any {
		m := someMap(name)
		m["data"] = map[string]any{"x": strings.Repeat(name, 1<<20)}
		return m
	}
	a, stop := serve()
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, 201, a.Do("POST", maps, large(name)).Code)
	}
	revision := a.Do("GET", maps+"/b", nil).Body["metadata"].(map[string]any)["resourceVersion"].(string)
	stop()
	losePiece(t, dir, revision)

	a, stop = serve()
	require.Equal(t, 500, a.Do("GET", maps+"/b", nil).Code)
	require.Equal(t, 200, a.Do("GET", maps+"/a", nil).Code)
	ready := a.Do("GET", "/readyz?verbose", nil)
	require.Equal(t, http.StatusInternalServerError, ready.Code)
	require.Contains(t, string(ready.Raw), "[-]storage-integrity failed")
	require.Equal(t, 200, a.Do("GET", "/livez", nil).Code)
	require.Contains(t, string(a.Do("GET", "/metrics", nil).Raw), "apiserver_storage_damaged_records 1")
	require.Equal(t, 200, a.Do("DELETE", maps+"/b", nil).Code)
	require.Equal(t, 200, a.Do("GET", "/readyz", nil).Code)
	require.Contains(t, string(a.Do("GET", "/metrics", nil).Raw), "apiserver_storage_damaged_records 0")
	require.Equal(t, 201, a.Do("POST", maps, large("b")).Code)
	stop()

	a, stop = serve()
	require.Equal(t, 200, a.Do("GET", maps, nil).Code)
	require.Equal(t, 200, a.Do("GET", "/readyz", nil).Code)
	stop()

	require.NoError(t, os.WriteFile(filepath.Join(dir, "LOST"), []byte("something"), 0o600))
	a, stop = serve()
	require.Equal(t, 500, a.Do("GET", "/readyz", nil).Code)
	require.Contains(t, string(a.Do("GET", "/metrics", nil).Raw), "apiserver_storage_lost_commits 1")
	require.NoError(t, os.Remove(filepath.Join(dir, "LOST")))
	require.Equal(t, 200, a.Do("GET", "/readyz", nil).Code)
	stop()
}

// losePiece removes a part of a large value from a closed store.
func losePiece(t *testing.T, dir, revision string) {
	o := badger.DefaultOptions(dir)
	o.Logger = nil
	db, err := badger.OpenManaged(o)
	require.NoError(t, err)
	var at uint64
	_, err = fmt.Sscan(revision, &at)
	require.NoError(t, err)
	txn := db.NewTransactionAt(at, false)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte("z")})
	var last []byte
	for it.Rewind(); it.Valid(); it.Next() {
		if it.Item().Version() == at {
			last = it.Item().KeyCopy(nil)
		}
	}
	it.Close()
	txn.Discard()
	require.NotNil(t, last)
	batch := db.NewManagedWriteBatch()
	require.NoError(t, batch.DeleteAt(last, at))
	require.NoError(t, batch.Flush())
	require.NoError(t, db.Close())
}

// TestDeleteOnlyUnreadable: the option to ignore read errors deletes only an unreadable object. It always requires
// its right, and excludes options that depend on the object.
func TestDeleteOnlyUnreadable(t *testing.T) {
	t.Parallel()
	const option = "ignoreStoreReadErrorWithClusterBreakingPotential"
	const maps = "/api/v1/namespaces/default/configmaps"
	mem := memstore.New(memstore.Options{})
	seed := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage = faultinject.Wrap(apitest.KeepOpen{Backend: mem}, nil) }))
	for _, name := range []string{"a", "bad", "c"} {
		seed.Must(201, "POST", maps, someMap(name))
	}
	store := faultinject.Wrap(mem, func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpRecord && strings.HasSuffix(c.Key, "/default/bad") {
			return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: c.At, Err: errors.New("spoilt")}}
		}
		return faultinject.Fault{}
	})
	gate := &notUnsafe{denied: "unsafe-delete-ignore-read-errors"}
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage, b.Authorizer = store, gate }))
	with := func(more map[string]any) map[string]any {
		body := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", option: true}
		for field, value := range more {
			body[field] = value
		}
		return body
	}
	a.Must(403, "DELETE", maps+"/a", with(nil))
	a.Must(403, "DELETE", maps+"/bad", with(nil))
	gate.denied = ""
	for _, dry := range []string{"", "&dryRun=All"} {
		a.Must(409, "DELETE", maps+"/a?"+option+"=true"+dry, nil)
	}
	got := a.Must(409, "DELETE", maps+"/a", with(nil))
	require.Contains(t, string(got.Raw), "unsafe deletion is not allowed because the object can be read")
	a.Must(404, "DELETE", maps+"/none", with(nil))
	for field, value := range map[string]any{
		"gracePeriodSeconds": int64(0), "preconditions": map[string]any{}, "propagationPolicy": "Background", "orphanDependents": true,
	} {
		for _, name := range []string{"a", "bad"} {
			got := a.Must(422, "DELETE", maps+"/"+name, with(map[string]any{field: value}))
			require.Contains(t, string(got.Raw), option+": Invalid value: true: cannot be set together with ."+field)
		}
	}
	a.Must(422, "DELETE", maps+"/a?"+option+"=true&gracePeriodSeconds=0", nil)
	for _, list := range []string{maps, "/api/v1/namespaces/empty/configmaps"} {
		got := a.Must(422, "DELETE", list, with(nil))
		require.Contains(t, string(got.Raw), option+": Invalid value: true: is not allowed with DELETECOLLECTION")
	}
	a.Must(422, "DELETE", maps+"?"+option+"=true", nil)
	for _, name := range []string{"a", "c"} {
		a.Must(200, "GET", maps+"/"+name, nil)
	}
	a.Must(200, "DELETE", maps+"/bad", with(map[string]any{"dryRun": []any{"All"}}))
	a.Must(500, "GET", maps+"/bad", nil)
	a.Must(200, "DELETE", maps+"/bad", with(nil))
	a.Must(404, "GET", maps+"/bad", nil)
	a.Must(200, "DELETE", maps+"/c?"+option+"=false", nil)
}
