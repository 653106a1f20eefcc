package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
	"orch.io/controlplane/storage"
)

// TestTimedOutStatementIsRetried: a statement that SQLite interrupts because of the deadline is
// retried.
func TestTimedOutStatementIsRetried(t *testing.T) {
	o := sqlstore.Options{File: filepath.Join(t.TempDir(), "data.db")}
	db, err := sql.Open("sqlite", o.File)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var n int64
	err = db.QueryRowContext(ctx, `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT count(*) FROM c`).Scan(&n)
	require.Error(t, err)
	require.True(t, sqlstore.Passing(o, err), "%v", err)
	require.True(t, sqlstore.Passing(o, fmt.Errorf("asked: %w", context.DeadlineExceeded)))
}

// TestDiskFull: when the disk is full, commits fail with ErrFull and write nothing, and reads work.
// Commits work again when there is space.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("a small disk cannot be mounted: ", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, 0)) }()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{File: filepath.Join(dir, "data.db"), Retain: forever})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var newest storage.Revision
	for range 1000 {
		var at storage.Revision
		if at, err = s.Commit(t.Context(), storage.Write{Key: "a", Value: make([]byte, 1<<16), Expect: newest}); err != nil {
			break
		}
		newest = at
	}
	require.ErrorIs(t, err, storage.ErrFull)
	for range 3 {
		_, err = s.Commit(t.Context(), storage.Write{Key: "b", Value: make([]byte, 1<<20), Expect: storage.AnyRevision})
		require.ErrorIs(t, err, storage.ErrFull)
	}
	at, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, newest, at)
	rec, err := s.Get(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, newest, rec.Revision)

	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	require.Equal(t, newest+1, put(t, s, "b", "2"))
	require.NoError(t, s.Compact(t.Context(), newest+1))
	require.Equal(t, newest+2, put(t, s, "c", "2"))
}
