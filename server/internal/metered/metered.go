// Package metered measures what a server asks of its store: how long it takes, how often,
// and with what success, under the names that dashboards know.
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

// backend is a store that is measured.
type backend struct {
	storage.Backend
	types func() *resource.State

	took         *prometheus.HistogramVec
	count, fault *prometheus.CounterVec
	kept         metrics.Kept[key, *counts]
	told         map[meta.GroupResource]bool // under the lock of kept
}

// historic is a measured store that is a storage.HistoryReader.
type historic struct {
	*backend
	storage.HistoryReader
}

// key is an operation on the objects of a type, by the prefix of their storage keys.
type key struct{ operation, prefix string }

type counts struct {
	took         prometheus.Observer
	count, fault prometheus.Counter
}

// New returns a store that measures what b is asked for. What belongs to none of the types
// is not told apart: those who may define types do not choose how many series there are
// at a time.
func New(b storage.Backend, set *metrics.Set, types func() *resource.State) storage.Backend {
	labels := []string{"operation", "group", "resource"}
	m := &backend{
		Backend: b, types: types, told: map[meta.GroupResource]bool{},
		took: set.Histograms(metrics.Family{
			Name: "etcd_request_duration_seconds", Help: "Time that the store took for an operation, whatever store that is, in seconds; for a list, until its last record was read.", Labels: labels,
			Buckets: []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}),
		count: set.Counters(metrics.Family{Name: "etcd_requests_total", Help: "Operations that the store was asked for, whatever store that is.", Labels: labels}),
		fault: set.Counters(metrics.Family{Name: "etcd_request_errors_total", Help: "Operations that the store failed at; that something is not there, is another than was expected, or lies before the history, is no failure.", Labels: labels}),
	}
	if h, ok := b.(storage.HistoryReader); ok {
		return &historic{m, h}
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
	c := b.kept.Get(state.Serial, key{operation, prefix}, func() *counts { return b.of(operation, prefix) }, b.forget)
	c.took.Observe(took.Seconds())
	c.count.Inc()
	if failed(err) {
		c.fault.Inc()
	}
}

// of makes the handles of a key.
func (b *backend) of(operation, prefix string) *counts {
	r, _, ok := resource.ParseStorageKey(prefix + "/")
	if t := b.types().Type(r); !ok || t == nil {
		r = meta.GroupResource{}
	} else {
		b.told[r] = true
	}
	return &counts{
		b.took.WithLabelValues(operation, r.Group, r.Resource),
		b.count.WithLabelValues(operation, r.Group, r.Resource), b.fault.WithLabelValues(operation, r.Group, r.Resource),
	}
}

// forget drops what is told of types that are gone.
func (b *backend) forget() {
	state := b.types()
	for r := range b.told {
		if state.Type(r) != nil {
			continue
		}
		delete(b.told, r)
		gone := prometheus.Labels{"group": r.Group, "resource": r.Resource}
		b.took.DeletePartialMatch(gone)
		b.count.DeletePartialMatch(gone)
		b.fault.DeletePartialMatch(gone)
	}
}

// failed reports whether an error is one of the store, not an answer of it: that something
// is not there, is there as another, or lies before the history or after it.
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
	operation, key := about(ws)
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

// about is what a commit does to the object that it is about: reservations and guards go
// with one.
func about(ws []storage.Write) (operation, key string) {
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
