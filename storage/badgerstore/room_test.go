package badgerstore

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestFullDisk: without room the store refuses to open and to write, but not to
// delete, and goes on when there is room again.
func TestFullDisk(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var left atomic.Int64
	o := Options{Dir: dir, Retain: -1, free: func(string) (int64, bool) { return left.Load(), true }}
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
	_, err = s.Commit(ctx, storage.Write{Key: "a", Expect: first})
	require.NoError(t, err)

	left.Store(1 << 30)
	_, err = s.Commit(ctx, storage.Write{Key: "b", Value: []byte("1")})
	require.NoError(t, err)
}
