package replicas_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// crowdedStore is a store of several servers that accepts only deletions while it is full.
type crowdedStore struct {
	apitest.SharedStore
	full atomic.Bool
}

func (s *crowdedStore) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if s.full.Load() && slices.ContainsFunc(ws, func(w storage.Write) bool { return w.Value != nil }) {
		return 0, storage.ErrFull
	}
	return s.SharedStore.Commit(ctx, ws...)
}

// TestAFullStoreIsEmptied: while the store is full, objects, including running pods, can be deleted,
// and the leader's controllers delete their dependents.
func TestAFullStoreIsEmptied(t *testing.T) {
	t.Parallel()
	inner := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = inner.Close() })
	store := &crowdedStore{SharedStore: apitest.SharedStore{Backend: inner}}
	s := servertest.New(t, apitest.WithStorage(store))
	a := apitest.InProcess(t, s)
	owner := a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("owner"))
	a.Must(201, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+apitest.NestedString(owner.Body, "metadata", "uid")+`"}]}}`)
	const pods = "/api/v1/namespaces/default/pods"
	a.Must(201, "POST", pods, `{"metadata":{"name":"runs"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`)
	a.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"ends"}}`)
	const held = apitest.NamespacesPath + "/ends/configmaps"
	a.Must(201, "POST", held, `{"metadata":{"name":"held","finalizers":["example.com/held"]}}`)
	a.Must(200, "DELETE", apitest.NamespacesPath+"/ends", nil)
	s.Settle()

	store.full.Store(true)
	a.Must(507, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("new"))
	a.Must(200, "DELETE", apitest.ConfigMapsPath+"/owner", nil)
	a.Must(200, "DELETE", pods+"/runs?gracePeriodSeconds=0", nil)
	a.Must(200, "PATCH", held+"/held", `{"metadata":{"finalizers":null}}`)
	for _, path := range []string{apitest.ConfigMapsPath + "/owned", pods + "/runs", apitest.NamespacesPath + "/ends"} {
		require.Eventually(t, func() bool { return a.Do("GET", path, nil).Code == 404 }, apitest.Timeout, time.Millisecond, path)
	}
	store.full.Store(false)
}
