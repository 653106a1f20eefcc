package storagetest

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestRunFaults checks that a correct store passes, and that a store that loses, invents or repeats commits fails.
func TestRunFaults(t *testing.T) {
	var n atomic.Int64
	once := func() bool { return n.Add(1) == 50 }
	yields := func(times int) func(b *broken) {
		return func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					again := 1
					if once() {
						again = times
					}
					for range again {
						if !yield(commit, err) {
							return
						}
					}
				}
			}
		}
	}
	for name, c := range map[string]struct {
		apply func(b *broken)
		did   string
	}{
		"good": {func(*broken) {}, ""},
		"a commit is lost": {func(b *broken) {
			b.commit = func(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
				if once() {
					return b.Store.Revision(ctx)
				}
				return b.Store.Commit(ctx, ws...)
			}
		}, "was committed at"},
		"a commit is lost later": {func(b *broken) {
			b.scan = func(ctx context.Context, prefix, _ string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				return b.Store.Scan(ctx, prefix, "k/5", at)
			}
		}, "was committed at"},
		"the revision is old": {func(b *broken) {
			b.revision = func(ctx context.Context) (storage.Revision, error) {
				at, err := b.Store.Revision(ctx)
				return max(0, at-20), err
			}
		}, "Revision returned"},
		"a watch skips":       {yields(0), "and the watch had"},
		"a watch tells twice": {yields(2), "the watch yields"},
		"a watch ends by itself": {func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					if once() || !yield(commit, err) {
						return
					}
				}
			}
		}, "the watch ended"},
	} {
		t.Run(name, func(t *testing.T) {
			n.Store(0)
			b := &broken{Store: memstore.New(memstore.Options{})}
			defer func() { require.NoError(t, b.Close()) }()
			c.apply(b)
			l := startLoad(t.Context(), []storage.Backend{b, b})
			defer l.cancel()
			require.NoError(t, l.progress(100))
			if err := l.check(); c.did == "" {
				require.NoError(t, err)
				require.Empty(t, l.failed)
			} else {
				require.ErrorContains(t, err, c.did)
			}
		})
	}
}
