package badgerstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestFullDiskRefusesWritesButNotDeletions checks that without space Open and writes fail with ErrFull,
// deletions succeed, and writes succeed again when there is space.
func TestFullDiskRefusesWritesButNotDeletions(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var left atomic.Int64
	o := Options{Dir: dir, Retain: -1, disk: func(string) (int64, int64, bool) { return left.Load(), 1 << 40, true }}
	_, err := Open(o)
	require.ErrorIs(t, err, storage.ErrFull)
	require.ErrorContains(t, err, dir)

	left.Store(1 << 30)
	s, err := Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	first, err := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")})
	require.NoError(t, err)

	left.Store(50 << 20)
	_, err = s.Commit(ctx, storage.Write{Key: "b", Value: []byte("1")})
	require.ErrorIs(t, err, storage.ErrFull)
	now, err := s.Revision(ctx)
	require.NoError(t, err)
	require.Equal(t, first, now)
	_, err = s.Commit(ctx, storage.Write{Key: "a", Expect: first}, storage.Write{Key: "none", Guard: true})
	require.NoError(t, err)

	left.Store(1 << 30)
	_, err = s.Commit(ctx, storage.Write{Key: "b", Value: []byte("1")})
	require.NoError(t, err)
}

// TestStoppedStoreCanBeRead checks that after a failed write the store refuses writes with ErrStopped but can
// still be read.
func TestStoppedStoreCanBeRead(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Retain: -1})
	require.NoError(t, err)
	put := func(key string) (storage.Revision, error) {
		return s.Commit(t.Context(), storage.Write{Key: key, Value: []byte("1")})
	}
	first, err := put("a")
	require.NoError(t, err)
	require.NoError(t, s.Writable(t.Context()))
	broken := &request{ctx: t.Context(), do: func() error { return s.stop(errors.New("input/output error")) }, done: make(chan struct{})}
	require.NoError(t, s.submit(broken))
	for range 2 {
		_, err = put("b")
		require.ErrorIs(t, err, storage.ErrStopped)
		require.ErrorIs(t, s.Writable(t.Context()), storage.ErrStopped)
	}
	rec, err := s.Get(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, first, rec.Revision)
	require.NoError(t, s.Close())
}
