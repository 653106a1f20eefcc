package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
	"orch.io/controlplane/storage"
)

func put(t testing.TB, s storage.Backend, key, value string) storage.Revision {
	t.Helper()
	revision, err := s.Commit(t.Context(), storage.Write{Key: key, Value: []byte(value), Expect: storage.AnyRevision})
	require.NoError(t, err)
	return revision
}

func openAt(t testing.TB, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestDatabaseFull: when the database is full, commits fail with ErrFull and write nothing. Commits
// work again when there is space.
func TestDatabaseFull(t *testing.T) {
	t.Parallel()
	o := empty(t)
	s := openAt(t, o)
	newest := put(t, s, "a", "1")
	query(t, o, `
		CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
		CREATE TRIGGER full_disk BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	_, err := s.Commit(t.Context(), storage.Write{Key: "b", Value: []byte("2")})
	require.ErrorIs(t, err, storage.ErrFull)
	at, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, newest, at)
	query(t, o, `DROP TRIGGER full_disk ON records`)
	require.Equal(t, newest+1, put(t, s, "b", "2"))
}

// TestCommitBeyondLimitsIsErrTooLarge: a commit beyond a limit fails with ErrTooLarge and writes
// nothing; a commit just within the limits succeeds, whatever its bytes are.
func TestCommitBeyondLimitsIsErrTooLarge(t *testing.T) {
	t.Parallel()
	for _, o := range []sqlstore.Options{{File: filepath.Join(t.TempDir(), "data.db")}, empty(t)} {
		s := openAt(t, o)
		key := make([]byte, 2<<10)
		for i := range key {
			key[i] = byte(rand.IntN(256)) // PostgreSQL could compress non-random keys
		}
		newest := put(t, s, string(key), "value")
		half := make([]byte, 32<<20)
		many := make([]storage.Write, storage.CommitLength+1)
		for i := range many {
			many[i] = storage.Write{Key: fmt.Sprint(i), Value: []byte("x")}
		}
		for _, ws := range [][]storage.Write{
			{{Key: string(key) + "x", Value: []byte("x")}},
			{{Key: "a", Value: half}, {Key: "b", Value: half}},
			many,
		} {
			_, err := s.Commit(t.Context(), ws...)
			require.ErrorIs(t, err, storage.ErrTooLarge)
		}
		_, records, err := s.Scan(t.Context(), "", "", 0)
		require.NoError(t, err)
		for rec, err := range records {
			require.NoError(t, err)
			require.Equal(t, storage.Record{Key: string(key), Value: []byte("value"), Revision: newest}, rec)
		}
	}
}

// TestUserWithoutCreatePermission: a user who may not create tables can use existing ones.
func TestUserWithoutCreatePermission(t *testing.T) {
	t.Parallel()
	o := empty(t)
	user := fmt.Sprint("user_", time.Now().UnixNano())
	small := o
	small.Postgres = strings.Replace(o.Postgres, "user=postgres", "user="+user, 1)
	query(t, o, `CREATE ROLE `+user+` LOGIN`)
	_, err := sqlstore.Open(t.Context(), small)
	require.ErrorContains(t, err, "permission denied")
	s := openAt(t, o)
	put(t, s, "a", "1")
	query(t, o, fmt.Sprintf(`GRANT USAGE ON SCHEMA %[1]s TO %[2]s; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO %[2]s`,
		pgx.Identifier{o.Schema}.Sanitize(), user))
	theirs := openAt(t, small)
	newest := put(t, theirs, "a", "2")
	require.NoError(t, theirs.Compact(t.Context(), newest))
	_, err = s.Get(t.Context(), "a", newest-1)
	require.ErrorIs(t, err, storage.ErrCompacted)
	require.Positive(t, theirs.Size())
}

// TestListenReportsCommits: the database notifies listeners of a commit without polling.
func TestListenReportsCommits(t *testing.T) {
	t.Parallel()
	o := empty(t)
	s := openAt(t, o)
	put(t, s, "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard, ended := make(chan storage.Revision, 2), make(chan error, 1)
	go func() { ended <- sqlstore.Listen(ctx, o, func(at storage.Revision) { heard <- at }) }()
	require.EqualValues(t, 1, <-heard, "the revision before listening")
	for want := storage.Revision(2); want < 5; want++ {
		put(t, s, "a", "2")
		require.Equal(t, want, <-heard)
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// TestStateLockedByAnotherProcess: while another process has locked the state, commits wait no longer
// than their contexts, and other calls do not wait.
func TestStateLockedByAnotherProcess(t *testing.T) {
	t.Parallel()
	o := empty(t)
	s, other := openAt(t, o), openAt(t, o)
	newest := put(t, s, "a", "1")
	conn, err := pgx.Connect(t.Context(), o.Postgres)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE `+pgx.Identifier{o.Schema, "state"}.Sanitize()+` SET revision = revision`)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Commit(ctx, storage.Write{Key: "a", Value: []byte("2"), Expect: newest})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for _, s := range []storage.Backend{s, other} {
		rec, err := s.Get(t.Context(), "a", 0)
		require.NoError(t, err)
		require.Equal(t, newest, rec.Revision)
		at, err := s.Revision(t.Context())
		require.NoError(t, err)
		require.Equal(t, newest, at)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := other.Commit(t.Context(), storage.Write{Key: "b", Value: []byte("2")})
		ended <- err
	}()
	require.NoError(t, other.Close(), "Close does not wait for the state")
	require.ErrorIs(t, <-ended, storage.ErrClosed)
	require.NoError(t, tx.Rollback(t.Context()))
	put(t, s, "c", "1")
	rec, err := s.Get(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Equal(t, "2", string(rec.Value), "a commit is applied although its caller has given up")
}

// TestPausedServer: calls end with their contexts while the server is paused, and everything continues
// when it resumes.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, "fsync=off")
	s := openAt(t, sqlstore.Options{Postgres: c.url(), Retain: forever})
	newest := put(t, s, "a", "1")
	c.signal(syscall.SIGSTOP)
	resumed := false
	resume := func() {
		if !resumed {
			c.signal(syscall.SIGCONT)
			resumed = true
		}
	}
	defer resume()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Get(ctx, "a", 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.Revision(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.Commit(ctx, storage.Write{Key: "a", Expect: newest})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	resume()
	require.Greater(t, put(t, s, "b", "2"), newest)
}

// TestStoresCompactTogether: several stores compact old history together, by the clock of the database,
// but never the newest state.
func TestStoresCompactTogether(t *testing.T) {
	t.Parallel()
	o := empty(t)
	o.Retain = time.Second
	many := openSeveral(t, o)
	old := put(t, many, "a", "old")
	replaced := time.Now()
	newest := put(t, many, "a", "new")
	deadline := replaced.Add(time.Minute)
	for _, s := range many.stores {
		_, err := s.Get(t.Context(), "a", old)
		for err == nil && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
			_, err = s.Get(t.Context(), "a", old)
		}
		require.ErrorIs(t, err, storage.ErrCompacted)
		require.Greater(t, time.Since(replaced), o.Retain)
		rec, err := s.Get(t.Context(), "a", newest)
		require.NoError(t, err)
		require.Equal(t, "new", string(rec.Value))
		require.NoError(t, s.Close(), "the other stores continue")
	}
}

// TestOpenErrorNamesTheServer: the error of a failed connection names the database and contains no
// password.
func TestOpenErrorNamesTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := sqlstore.Open(t.Context(), sqlstore.Options{Postgres: "host=" + dir + " user=ours password=secret dbname=name"})
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, `"name"`)
	require.NotContains(t, err.Error(), "secret")
	_, err = sqlstore.Open(t.Context(), sqlstore.Options{Postgres: "postgres://ours:secret@[::1", File: ""})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
	_, err = sqlstore.Open(t.Context(), sqlstore.Options{Postgres: "host=" + dir, File: "data.db"})
	require.ErrorContains(t, err, "both")
}

// TestStandbyIsRefusedUntilPromoted: a standby is refused, because it may lack acknowledged commits.
// After its promotion the stores continue with it; it has all commits, because they have waited for it.
func TestStandbyIsRefusedUntilPromoted(t *testing.T) {
	t.Parallel()
	primary := ownCluster(t, "fsync=off", "synchronous_standby_names=*")
	standby, err := primary.standby()
	if standby != nil {
		t.Cleanup(func() { require.NoError(t, standby.remove()) })
	}
	require.NoError(t, err)
	_, err = sqlstore.Open(t.Context(), sqlstore.Options{Postgres: standby.url()})
	require.ErrorContains(t, err, "standby")

	both := fmt.Sprintf("host=%s,%s user=postgres dbname=postgres", standby.dir, primary.dir)
	many := openSeveral(t, sqlstore.Options{Postgres: both, Retain: forever})
	defer func() { require.NoError(t, many.Close()) }()
	many.underFaults(t, func(progress func(commits int)) {
		progress(100)
		primary.kill()
		query(t, sqlstore.Options{Postgres: standby.url()}, `SELECT pg_promote()`)
		progress(100)
	})
}

// TestTablesOfEarlierVersionAreExtended: missing columns are added to tables of an earlier version.
func TestTablesOfEarlierVersionAreExtended(t *testing.T) {
	t.Parallel()
	o := empty(t)
	put(t, openAt(t, o), "a", "1")
	for _, column := range []string{"state DROP COLUMN lost", "state DROP COLUMN history", "commits DROP COLUMN id"} {
		query(t, o, `ALTER TABLE `+column)
	}
	put(t, openAt(t, o), "b", "1")

	file := filepath.Join(t.TempDir(), "data.db")
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{File: file})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `ALTER TABLE state DROP COLUMN lost; ALTER TABLE state DROP COLUMN history; ALTER TABLE commits DROP COLUMN id`)
	require.NoError(t, errors.Join(err, db.Close()))
	put(t, openAt(t, sqlstore.Options{File: file}), "b", "1")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(file + suffix)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
	}
}

// TestErrorHasSafeDescription: an error of the database has a Kind without details.
func TestErrorHasSafeDescription(t *testing.T) {
	t.Parallel()
	o := empty(t)
	s := openAt(t, o)
	put(t, s, "a", "1")
	query(t, o, `ALTER TABLE records RENAME TO elsewhere`)
	_, err := s.Get(t.Context(), "a", 0)
	var trouble *storage.UnavailableError
	require.ErrorAs(t, err, &trouble)
	require.Equal(t, "the database denies access to the tables of the store", trouble.Kind)
	_, err = s.Commit(t.Context(), storage.Write{Key: "b", Value: []byte("1")})
	require.ErrorAs(t, err, &trouble)
}

// TestTimeoutSettingsAreOverridden: timeouts set for the database or the user do not limit how long a
// commit waits.
func TestTimeoutSettingsAreOverridden(t *testing.T) {
	t.Parallel()
	o := empty(t)
	set := o
	set.Postgres += " statement_timeout=100 idle_session_timeout=100 default_transaction_isolation=serializable"
	s := openAt(t, set)
	newest := put(t, s, "a", "1")
	conn, err := pgx.Connect(t.Context(), o.Postgres)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE `+pgx.Identifier{o.Schema, "state"}.Sanitize()+` SET revision = revision`)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("2"), Expect: newest})
		ended <- err
	}()
	select {
	case err := <-ended:
		require.NoError(t, err)
		require.Fail(t, "commit returned while another transaction held the state")
	case <-time.After(500 * time.Millisecond):
	}
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-ended)
}

// TestServerErrorIsReturnedAtOnce: an error that the server reports is returned without retries.
func TestServerErrorIsReturnedAtOnce(t *testing.T) {
	t.Parallel()
	o := empty(t)
	s := openAt(t, o)
	query(t, o, `DROP TABLE records`)
	_, err := s.Get(t.Context(), "a", 0)
	require.ErrorContains(t, err, "records")
	for _, err = range s.Watch(t.Context(), "", 0) {
		require.ErrorContains(t, err, "records")
	}
	require.Error(t, err)
	require.False(t, errors.Is(err, storage.ErrClosed))
}
