package sqlstore_test

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
)

// lockWith begins a transaction that executes a statement, and returns a function that ends it.
func lockWith(t *testing.T, o sqlstore.Options, statement string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.Postgres)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	_, err = conn.Exec(t.Context(), `SELECT set_config('search_path', $1, false)`, pgx.Identifier{o.Schema}.Sanitize())
	require.NoError(t, err)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), statement)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback(t.Context())) }
}

// waitForLocks returns when at least n statements of the test wait for locks.
func waitForLocks(t *testing.T, o sqlstore.Options, n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.Postgres)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	require.Eventually(t, func() bool {
		var waiting int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, o.Schema).Scan(&waiting)
		return err == nil && waiting >= n
	}, 5*time.Minute, time.Millisecond)
}

// TestAcceptWhileLossIsWritten: a store that finds a loss before Accept does not report it after
// Accept.
func TestAcceptWhileLossIsWritten(t *testing.T) {
	t.Parallel()
	o := empty(t)
	s := openAt(t, o)
	put(t, s, "a", "1")
	put(t, s, "a", "2")
	release := lockWith(t, o, `SELECT FROM state FOR UPDATE`)
	accepted, found := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := sqlstore.Accept(t.Context(), o)
		accepted <- err
	}()
	waitForLocks(t, o, 1)
	sqlstore.Show(s, 2) // these are not the IDs of the commits
	go func() {
		_, err := s.Get(t.Context(), "a", 0)
		found <- err
	}()
	waitForLocks(t, o, 2)
	release()
	require.NoError(t, <-accepted)
	require.Error(t, <-found)
	next := openAt(t, o)
	require.NoError(t, next.Check(t.Context()))
	put(t, next, "a", "3")
}

// TestAcceptWhileCompacting: Accept waits for a running compaction, and there is no deadlock.
func TestAcceptWhileCompacting(t *testing.T) {
	t.Parallel()
	o := empty(t)
	s := openAt(t, o)
	put(t, s, "a", "1")
	newest := put(t, s, "a", "2")
	release := lockWith(t, o, `SELECT FROM records FOR UPDATE`)
	compacted, accepted := make(chan error, 1), make(chan error, 1)
	go func() { compacted <- s.Compact(t.Context(), newest) }()
	waitForLocks(t, o, 1)
	go func() {
		_, err := sqlstore.Accept(t.Context(), o)
		accepted <- err
	}()
	waitForLocks(t, o, 2)
	release()
	require.NoError(t, <-accepted)
	require.NoError(t, <-compacted)
}

// TestAcceptWithoutStore: Accept fails for a database without a store, and does not change it.
func TestAcceptWithoutStore(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		o := empty(t)
		for range 2 {
			_, err := sqlstore.Accept(t.Context(), o)
			require.ErrorContains(t, err, "the database has no store")
		}
	})
	file := filepath.Join(t.TempDir(), "data.db")
	_, err := sqlstore.Accept(t.Context(), sqlstore.Options{File: file})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, file)

	other, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	_, err = other.ExecContext(t.Context(), `CREATE TABLE state (name TEXT)`)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = sqlstore.Accept(t.Context(), sqlstore.Options{File: file})
	require.ErrorContains(t, err, "the database has no store")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
