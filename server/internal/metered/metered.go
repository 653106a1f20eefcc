// Package metered wraps a store with metrics of its operations, with the names that dashboards use
// for etcd.
package metered

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// backend is a storage.Backend with metrics.
type backend struct {
	storage.Backend
	types func() *resource.State

	took         *prometheus.HistogramVec
	count, fault *prometheus.CounterVec
	kept         metrics.HandleCache[key, *counts]
	labeled      map[meta.GroupResource]bool // resources that have series; used only by makeCounts and forget, which kept serializes
}

// historianBackend is a backend over a storage.HistoryReader.
type historianBackend struct {
	*backend
	storage.HistoryReader
}

// key identifies the series of an operation on objects with a storage key prefix.
type key struct{ operation, prefix string }

// counts has the metrics of a key.
type counts struct {
	took         prometheus.Observer
	count, fault prometheus.Counter
}

// New returns b with metrics. Operations on keys that belong to no type share empty labels, so that
// clients which can define types do not control the number of series.
func New(b storage.Backend, set *metrics.Set, types func() *resource.State) storage.Backend {
	labels := []string{"operation", "group", "resource"}
	m := &backend{
		Backend: b, types: types, labeled: map[meta.GroupResource]bool{},
		took: set.Histograms(metrics.Family{
			Name: "etcd_request_duration_seconds", Help: "Duration of operations of the store, of whatever kind, in seconds; for a list, until its last record was read.", Labels: labels,
			Buckets: []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}),
		count: set.Counters(metrics.Family{Name: "etcd_requests_total", Help: "Operations of the store, of whatever kind.", Labels: labels}),
		fault: set.Counters(metrics.Family{Name: "etcd_request_errors_total", Help: "Failed operations of the store, except those that found no record, a conflict, or a compacted or future revision.", Labels: labels}),
	}
	if h, ok := b.(storage.HistoryReader); ok {
		return &historianBackend{m, h}
	}
	return m
}

// measure counts an operation that has ended.
func (b *backend) measure(operation, storageKey string, begun time.Time, err error) {
	took := time.Since(begun)
	prefix := ""
	if i := strings.IndexByte(storageKey, '/'); i > 0 {
		prefix = storageKey[:i+1]
	}
	state := b.types()
	c := b.kept.Get(state.Serial, key{operation, prefix}, func() *counts { return b.makeCounts(operation, prefix) }, b.forget)
	c.took.Observe(took.Seconds())
	c.count.Inc()
	if failed(err) {
		c.fault.Inc()
	}
}

// makeCounts returns the metrics of a key.
func (b *backend) makeCounts(operation, prefix string) *counts {
	r, _, ok := resource.ParseStorageKey(prefix + "/")
	if t := b.types().Type(r); !ok || t == nil {
		r = meta.GroupResource{}
	} else {
		b.labeled[r] = true
	}
	return &counts{
		b.took.WithLabelValues(operation, r.Group, r.Resource),
		b.count.WithLabelValues(operation, r.Group, r.Resource), b.fault.WithLabelValues(operation, r.Group, r.Resource),
	}
}

// forget removes the series of types that no longer exist.
func (b *backend) forget() {
	state := b.types()
	for r := range b.labeled {
		if state.Type(r) != nil {
			continue
		}
		delete(b.labeled, r)
		gone := prometheus.Labels{"group": r.Group, "resource": r.Resource}
		b.took.DeletePartialMatch(gone)
		b.count.DeletePartialMatch(gone)
		b.fault.DeletePartialMatch(gone)
	}
}

// failed reports whether an error is a failure of the store and not a regular result, such as a
// missing record, a conflict, or a compacted or future revision.
func failed(err error) bool {
	for _, answer := range []error{storage.ErrNotFound, storage.ErrCompacted, storage.ErrFuture, context.Canceled} {
		if errors.Is(err, answer) {
			return false
		}
	}
	var conflict *storage.ConflictError
	return err != nil && !errors.As(err, &conflict)
}

// Get implements storage.Backend.
func (b *backend) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	begun := time.Now()
	rec, err := b.Backend.Get(ctx, key, at)
	b.measure("get", key, begun, err)
	return rec, err
}

// Scan implements storage.Backend.
func (b *backend) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	begun := time.Now()
	rev, records, err := b.Backend.Scan(ctx, prefix, start, at)
	if err != nil {
		b.measure("list", prefix, begun, err)
		return rev, nil, err
	}
	return rev, func(yield func(storage.Record, error) bool) {
		var last error
		defer func() { b.measure("list", prefix, begun, last) }()
		for rec, err := range records {
			if err != nil {
				last = err
			}
			if !yield(rec, err) {
				return
			}
		}
	}, nil
}

// Commit implements storage.Backend.
func (b *backend) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	begun := time.Now()
	rev, err := b.Backend.Commit(ctx, ws...)
	operation, key := operationOf(ws)
	b.measure(operation, key, begun, err)
	return rev, err
}

// CommitSequence implements storage.Sequencer. It is one operation.
func (b *backend) CommitSequence(ctx context.Context, first storage.Write, then ...[]byte) ([]storage.Revision, error) {
	begun := time.Now()
	revs, err := storage.CommitSequence(ctx, b.Backend, first, then...)
	b.measure("update", first.Key, begun, err)
	return revs, err
}

// Compact implements storage.Backend.
func (b *backend) Compact(ctx context.Context, before storage.Revision) error {
	begun := time.Now()
	err := b.Backend.Compact(ctx, before)
	b.measure("compact", "", begun, err)
	return err
}

// operationOf returns the operation and the key of the object that a commit writes, ignoring
// reservations and guards.
func operationOf(ws []storage.Write) (operation, key string) {
	for _, w := range ws {
		if w.Guard || strings.HasPrefix(w.Key, resource.ReservationPrefix) {
			continue
		}
		switch {
		case w.Value == nil:
			return "delete", w.Key
		case w.Expect == 0:
			return "create", w.Key
		}
		return "update", w.Key
	}
	return "update", ""
}
