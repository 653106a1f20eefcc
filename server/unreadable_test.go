package server_test

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
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

// notUnsafe lets everybody do everything but delete what cannot be read.
type notUnsafe struct{ denied string }

func (n *notUnsafe) Authorize(_ context.Context, a auth.Action) (auth.Decision, string, error) {
	if a.Verb == n.denied {
		return auth.Deny, "not that", nil
	}
	return auth.Allow, "", nil
}

func someMap(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"of": name}}
}

// TestUnreadableObject: an object that the store cannot read is a 500 of its own
// for every verb, and what is read of many says which it is; everything else is
// served. Whoever may can delete it, and write it anew.
func TestUnreadableObject(t *testing.T) {
	ctx := context.Background()
	mem := memstore.New(memstore.Options{})
	maps := "/api/v1/namespaces/default/configmaps"
	seedServer := servertest.New(t, func(b *server.Builder) { b.Storage = faultinject.Wrap(keepOpen{mem}, nil) })
	seed := inProcess(t, seedServer)
	for _, name := range []string{"a", "bad", "c"} {
		require.Equal(t, 201, seed.do("POST", maps, someMap(name)).code)
	}
	before := seed.do("GET", maps, nil).body["metadata"].(map[string]any)["resourceVersion"].(string)

	gate := &notUnsafe{denied: "unsafe-delete-ignore-read-errors"}
	store := faultinject.Wrap(mem, func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpRecord && strings.HasSuffix(c.Key, "/default/bad") {
			return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: c.At, Err: errors.New("spoilt")}}
		}
		return faultinject.Fault{}
	})
	a := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage, b.Authorizer = store, gate }))
	bad := maps + "/bad"
	for _, path := range []string{bad, maps, "/api/v1/configmaps", maps + "?watch=true", maps + "?fieldSelector=metadata.name%3Dbad",
		maps + "?limit=1", maps + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"} {
		got := a.do("GET", path, nil)
		require.Equal(t, 500, got.code, "%s: %s", path, got.raw)
		require.Equal(t, "Status", got.body["kind"])
		require.Contains(t, string(got.raw), "default/bad")
		require.Contains(t, string(got.raw), "damaged")
	}
	require.Equal(t, 500, a.do("PUT", bad, someMap("bad")).code)
	require.Equal(t, 500, a.do("POST", maps, someMap("bad")).code)
	require.Equal(t, 500, a.do("DELETE", maps, nil).code)
	for _, name := range []string{"a", "c"} {
		require.Equal(t, name, a.do("GET", maps+"/"+name, nil).body["data"].(map[string]any)["of"])
	}
	require.Equal(t, 200, a.do("GET", "/api/v1/namespaces/other/configmaps", nil).code)
	require.Equal(t, 200, a.do("GET", maps+"?fieldSelector=metadata.name%3Da", nil).code)
	require.Equal(t, 201, a.do("POST", maps, someMap("new")).code)

	require.Equal(t, 403, a.do("DELETE", bad, nil).code)
	gate.denied = ""
	require.Equal(t, 409, a.do("DELETE", bad, map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": map[string]any{"uid": "x"}}).code)
	require.Equal(t, 200, a.do("DELETE", bad+"?dryRun=All", nil).code)
	require.Equal(t, 500, a.do("GET", bad, nil).code)
	require.Equal(t, 200, a.do("DELETE", bad, nil).code)
	require.Equal(t, 404, a.do("GET", bad, nil).code)
	require.Equal(t, 200, a.do("GET", maps, nil).code)
	require.Equal(t, 201, a.do("POST", maps, someMap("bad")).code)
	require.Equal(t, "bad", a.do("GET", bad, nil).body["data"].(map[string]any)["of"])
	// Nobody can be told what went: who watched it starts over.
	got := a.do("GET", maps+"?watch=true&timeoutSeconds=1&resourceVersion="+before, nil)
	require.Contains(t, string(got.raw), "too old resource version")
	_, err := store.Get(ctx, "configmaps/default/bad", 0)
	require.NoError(t, err)
}

// TestUnreadableObjectInWhatEnds: an object that cannot be read keeps its
// namespace, or its definition, from going until it is deleted; the others there
// are deleted, and the conditions say what remains.
func TestUnreadableObjectInWhatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const widgets = "/apis/sea.example.com/v1/widgets"
		const definition = crdPath + "/widgets.sea.example.com"
		mem := memstore.New(memstore.Options{})
		seedServer := servertest.New(t, over(keepOpen{mem}))
		seed := inProcess(t, seedServer)
		seed.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "ends"}})
		seed.must(201, "POST", crdPath, boatDefinition("widgets", "Widget"))
		seedServer.Settle()
		for _, name := range []string{"a", "bad", "c"} {
			seed.must(201, "POST", "/api/v1/namespaces/ends/configmaps", someMap(name))
			seed.must(201, "POST", widgets, map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}})
		}
		require.NoError(t, seedServer.Shutdown(t.Context()))
		s := servertest.New(t, over(faultinject.Wrap(keepOpen{mem}, func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpRecord && strings.HasSuffix(c.Key, "/bad") {
				return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: c.At, Err: errors.New("spoilt")}}
			}
			return faultinject.Fault{}
		})))
		a := inProcess(t, s)
		for _, path := range []string{"/api/v1/namespaces/ends", definition} {
			a.must(200, "DELETE", path, nil)
		}
		time.Sleep(time.Minute)
		for path, told := range map[string]string{"/api/v1/namespaces/ends": "ends/bad", definition: "1 objects of this kind are left"} {
			got := a.must(200, "GET", path, nil)
			require.Contains(t, string(got.raw), told)
		}
		for _, list := range []string{"/api/v1/namespaces/ends/configmaps", widgets} {
			a.must(404, "GET", list+"/a", nil)
			a.must(404, "GET", list+"/c", nil)
			a.must(500, "GET", list+"/bad", nil)
			a.must(200, "DELETE", list+"/bad", nil)
		}
		time.Sleep(time.Minute)
		a.must(404, "GET", "/api/v1/namespaces/ends", nil)
		a.must(404, "GET", definition, nil)
	})
}

// TestUndeletableObjectInWhatEnds: an object that admission refuses to delete keeps its
// namespace from going, but nothing else there; the conditions say why, and their text,
// though it is never the same, does not keep the controller busy.
func TestUndeletableObjectInWhatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const widgets = "/apis/sea.example.com/v1/widgets"
		const definition, namespace = crdPath + "/widgets.sea.example.com", "/api/v1/namespaces/ends"
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
		a := inProcess(t, s)
		a.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "ends"}})
		a.must(201, "POST", crdPath, boatDefinition("widgets", "Widget"))
		s.Settle()
		for _, name := range []string{"a", "bad", "c"} {
			for i, kind := range []string{"ConfigMap", "Secret", "Widget"} {
				body := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}
				if kind == "Widget" {
					body["apiVersion"] = "sea.example.com/v1"
				}
				a.must(201, "POST", lists[i], body)
			}
		}
		a.must(200, "DELETE", namespace, nil)
		a.must(200, "DELETE", definition, nil)
		time.Sleep(time.Minute)
		require.Less(t, refused.Load(), int64(200))
		for _, list := range lists[:2] {
			require.Equal(t, []string{"bad"}, a.must(200, "GET", list, nil).names())
		}
		require.Equal(t, 404, a.do("GET", widgets, nil).code, "admission is not asked about the objects of a definition that is deleted")
		a.must(404, "GET", definition, nil)
		conditions := map[string]string{}
		for _, c := range at(a.must(200, "GET", namespace, nil).body, "status", "conditions").([]any) {
			conditions[text(c, "type")+" "+text(c, "status")] = text(c, "message")
		}
		require.Contains(t, conditions["NamespaceContentRemaining True"], "configmaps has 1 resource instances secrets has 1 resource instances")
		require.Regexp(t, `^Failed to delete all resource types, 2 remaining: deleting configmaps in ends: .*refused .*, deleting secrets in ends: .*refused`,
			strings.ReplaceAll(conditions["NamespaceDeletionContentFailure True"], "\n", ""))
		open.Store(true)
		time.Sleep(10 * time.Minute)
		a.must(404, "GET", namespace, nil)
	})
}

// keepOpen is a store that outlives its server.
type keepOpen struct{ storage.Backend }

func (keepOpen) Close() error { return nil }

// TestDamagedDirectory: a server over a directory in which one large object is
// damaged starts and serves the others; a check and a metric fail until the
// object is deleted.
func TestDamagedDirectory(t *testing.T) {
	dir := t.TempDir()
	maps := "/api/v1/namespaces/default/configmaps"
	serve := func() (*api, func()) {
		store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
		require.NoError(t, err)
		s := servertest.New(t, func(b *server.Builder) { b.Storage = store })
		return inProcess(t, s), func() { require.NoError(t, s.Shutdown(context.Background())) }
	}
	large := func(name string) map[string]any {
		m := someMap(name)
		m["data"] = map[string]any{"x": strings.Repeat(name, 1<<20)}
		return m
	}
	a, stop := serve()
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, 201, a.do("POST", maps, large(name)).code)
	}
	revision := a.do("GET", maps+"/b", nil).body["metadata"].(map[string]any)["resourceVersion"].(string)
	stop()
	losePiece(t, dir, revision)

	a, stop = serve()
	require.Equal(t, 500, a.do("GET", maps+"/b", nil).code)
	require.Equal(t, 200, a.do("GET", maps+"/a", nil).code)
	ready := a.do("GET", "/readyz?verbose", nil)
	require.Equal(t, http.StatusInternalServerError, ready.code)
	require.Contains(t, string(ready.raw), "[-]storage-integrity failed")
	require.Equal(t, 200, a.do("GET", "/livez", nil).code)
	require.Contains(t, string(a.do("GET", "/metrics", nil).raw), "apiserver_storage_damaged_records 1")
	require.Equal(t, 200, a.do("DELETE", maps+"/b", nil).code)
	require.Equal(t, 200, a.do("GET", "/readyz", nil).code)
	require.Contains(t, string(a.do("GET", "/metrics", nil).raw), "apiserver_storage_damaged_records 0")
	require.Equal(t, 201, a.do("POST", maps, large("b")).code)
	stop()

	a, stop = serve()
	require.Equal(t, 200, a.do("GET", maps, nil).code)
	require.Equal(t, 200, a.do("GET", "/readyz", nil).code)
	stop()

	require.NoError(t, os.WriteFile(filepath.Join(dir, "LOST"), []byte("something"), 0o600))
	a, stop = serve()
	require.Equal(t, 500, a.do("GET", "/readyz", nil).code)
	require.Contains(t, string(a.do("GET", "/metrics", nil).raw), "apiserver_storage_lost_commits 1")
	require.NoError(t, os.Remove(filepath.Join(dir, "LOST")))
	require.Equal(t, 200, a.do("GET", "/readyz", nil).code)
	stop()
}

// losePiece takes a part of a large value out of a closed store.
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

// TestDeleteOnlyUnreadable: the option to ignore read errors deletes an object that cannot be
// read and no other, needs its right in any case, and goes with no option that would need the
// object.
func TestDeleteOnlyUnreadable(t *testing.T) {
	const option = "ignoreStoreReadErrorWithClusterBreakingPotential"
	const maps = "/api/v1/namespaces/default/configmaps"
	mem := memstore.New(memstore.Options{})
	seed := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage = faultinject.Wrap(keepOpen{mem}, nil) }))
	for _, name := range []string{"a", "bad", "c"} {
		seed.must(201, "POST", maps, someMap(name))
	}
	store := faultinject.Wrap(mem, func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpRecord && strings.HasSuffix(c.Key, "/default/bad") {
			return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: c.At, Err: errors.New("spoilt")}}
		}
		return faultinject.Fault{}
	})
	gate := &notUnsafe{denied: "unsafe-delete-ignore-read-errors"}
	a := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage, b.Authorizer = store, gate }))
	with := func(more map[string]any) map[string]any {
		body := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", option: true}
		for field, value := range more {
			body[field] = value
		}
		return body
	}
	a.must(403, "DELETE", maps+"/a", with(nil))
	a.must(403, "DELETE", maps+"/bad", with(nil))
	gate.denied = ""
	for _, dry := range []string{"", "&dryRun=All"} {
		a.must(409, "DELETE", maps+"/a?"+option+"=true"+dry, nil)
	}
	got := a.must(409, "DELETE", maps+"/a", with(nil))
	require.Contains(t, string(got.raw), "unsafe deletion is not allowed because the object can be read")
	a.must(404, "DELETE", maps+"/none", with(nil))
	for field, value := range map[string]any{
		"gracePeriodSeconds": int64(0), "preconditions": map[string]any{}, "propagationPolicy": "Background", "orphanDependents": true,
	} {
		for _, name := range []string{"a", "bad"} {
			got := a.must(422, "DELETE", maps+"/"+name, with(map[string]any{field: value}))
			require.Contains(t, string(got.raw), option+": Invalid value: true: cannot be set together with ."+field)
		}
	}
	a.must(422, "DELETE", maps+"/a?"+option+"=true&gracePeriodSeconds=0", nil)
	for _, list := range []string{maps, "/api/v1/namespaces/empty/configmaps"} {
		got := a.must(422, "DELETE", list, with(nil))
		require.Contains(t, string(got.raw), option+": Invalid value: true: is not allowed with DELETECOLLECTION")
	}
	a.must(422, "DELETE", maps+"?"+option+"=true", nil)
	for _, name := range []string{"a", "c"} {
		a.must(200, "GET", maps+"/"+name, nil)
	}
	a.must(200, "DELETE", maps+"/bad", with(map[string]any{"dryRun": []any{"All"}}))
	a.must(500, "GET", maps+"/bad", nil)
	a.must(200, "DELETE", maps+"/bad", with(nil))
	a.must(404, "GET", maps+"/bad", nil)
	a.must(200, "DELETE", maps+"/c?"+option+"=false", nil)
}
