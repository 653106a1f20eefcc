package metered_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/metered"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// broken is a store whose Get fails while err is set.
type broken struct {
	storage.Backend
	err error
}

func (b *broken) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	if b.err != nil {
		return storage.Record{}, b.err
	}
	return b.Backend.Get(ctx, key, at)
}

type thing struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
}

// values returns the non-zero counters of a registry, and the counts of its histograms, by name,
// group, operation and resource.
func values(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	families, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			n := m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				n = float64(h.GetSampleCount())
			}
			key := f.GetName()
			for _, l := range m.Label { // group, operation, resource
				key += " " + l.GetValue()
			}
			if n > 0 {
				out[key] = n
			}
		}
	}
	return out
}

// TestRegularResultsAreNoErrors checks the labels of operations, and that regular results of the store do not
// count as errors.
func TestRegularResultsAreNoErrors(t *testing.T) {
	var catalog resource.Catalog
	typ, err := resource.Compile(registry.Of(registry.Definition[thing]{Group: "example.com", Version: "v1", Kind: "Thing"}), names.Kubernetes)
	require.NoError(t, err)
	catalog.Put(typ)
	reg := prometheus.NewRegistry()
	set := metrics.For(reg)
	below := &broken{Backend: memstore.New(memstore.Options{})}
	store := metered.New(below, set, catalog.Now)
	require.NoError(t, set.Err())
	ctx, key := t.Context(), "things.example.com/default/a"
	claim := resource.ReservationPrefix + "things.example.com/x"
	_, err = store.Commit(ctx, storage.Write{Key: claim, Value: []byte("{}")}, storage.Write{Key: key, Value: []byte("1")})
	require.NoError(t, err)
	_, err = store.Commit(ctx, storage.Write{Key: key, Value: []byte("1")})
	require.Error(t, err, "the key exists already")
	_, err = store.Commit(ctx, storage.Write{Key: key, Value: []byte("2"), Expect: storage.AnyRevision})
	require.NoError(t, err)
	_, err = storage.CommitSequence(ctx, store, storage.Write{Key: key, Value: []byte("3"), Expect: storage.AnyRevision}, []byte("4"), []byte("5"))
	require.NoError(t, err)
	_, err = store.Get(ctx, key+"b", 0)
	require.ErrorIs(t, err, storage.ErrNotFound)
	below.err = errors.New("the disk is gone")
	_, err = store.Get(ctx, key, 0)
	require.Error(t, err)
	_, records, err := store.Scan(ctx, "things.example.com/", "", 0)
	require.NoError(t, err)
	for range records {
	}
	below.err = nil
	now, err := store.Commit(ctx, storage.Write{Key: key, Expect: storage.AnyRevision})
	require.NoError(t, err)
	require.NoError(t, store.Compact(ctx, now))
	_, err = store.Get(ctx, key, 1)
	require.ErrorIs(t, err, storage.ErrCompacted)
	_, _, err = store.Scan(ctx, "things.example.com/", "", 1) // as with an old continue token
	require.ErrorIs(t, err, storage.ErrCompacted)
	_, _, err = store.Scan(ctx, "things.example.com/", "", now+1)
	require.ErrorIs(t, err, storage.ErrFuture)
	below.err = errors.New("the disk is gone")
	_, _ = store.Get(ctx, "unknown.example.com/default/a", 0)
	want := map[string]float64{}
	for operation, n := range map[string]float64{"example.com create things": 2, "example.com update things": 2, "example.com get things": 3,
		"example.com list things": 3, "example.com delete things": 1, " compact ": 1, " get ": 1} {
		want["etcd_requests_total "+operation], want["etcd_request_duration_seconds "+operation] = n, n
	}
	want["etcd_request_errors_total example.com get things"], want["etcd_request_errors_total  get "] = 1, 1
	assert.Equal(t, want, values(t, reg))

	catalog.Remove(typ.GroupResource())
	_, _ = store.Get(ctx, key, 0)
	for name := range values(t, reg) {
		assert.NotContains(t, name, "things")
	}
	require.NoError(t, store.Close())
}
