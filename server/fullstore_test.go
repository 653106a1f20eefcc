package server_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// crowdedStore is a store of several servers that takes nothing but deletions while it is full.
type crowdedStore struct {
	sharedStore
	full atomic.Bool
}

func (s *crowdedStore) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if s.full.Load() && slices.ContainsFunc(ws, func(w storage.Write) bool { return w.Value != nil }) {
		return 0, storage.ErrFull
	}
	return s.sharedStore.Commit(ctx, ws...)
}

// TestAFullStoreIsEmptied: while there is room for nothing, objects can be deleted, also pods
// that run, and the controllers of whoever leads delete what goes with them.
func TestAFullStoreIsEmptied(t *testing.T) {
	inner := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = inner.Close() })
	store := &crowdedStore{sharedStore: sharedStore{inner}}
	s := servertest.New(t, over(store))
	a := inProcess(t, s)
	owner := a.must(201, "POST", configMaps, newConfigMap("owner"))
	a.must(201, "POST", configMaps, `{"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+text(owner.body, "metadata", "uid")+`"}]}}`)
	const pods = "/api/v1/namespaces/default/pods"
	a.must(201, "POST", pods, `{"metadata":{"name":"runs"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`)
	a.must(201, "POST", namespacePath, `{"metadata":{"name":"ends"}}`)
	const held = namespacePath + "/ends/configmaps"
	a.must(201, "POST", held, `{"metadata":{"name":"held","finalizers":["example.com/held"]}}`)
	a.must(200, "DELETE", namespacePath+"/ends", nil)
	s.Settle()

	store.full.Store(true)
	a.must(507, "POST", configMaps, newConfigMap("new"))
	a.must(200, "DELETE", configMaps+"/owner", nil)
	a.must(200, "DELETE", pods+"/runs?gracePeriodSeconds=0", nil)
	a.must(200, "PATCH", held+"/held", `{"metadata":{"finalizers":null}}`)
	for _, path := range []string{configMaps + "/owned", pods + "/runs", namespacePath + "/ends"} {
		require.Eventually(t, func() bool { return a.do("GET", path, nil).code == 404 }, patience, time.Millisecond, path)
	}
	store.full.Store(false)
}
