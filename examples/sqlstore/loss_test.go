package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
	"orch.io/controlplane/storage"
)

// notices are the calls by which a store must detect missing commits.
var notices = map[string]func(ctx context.Context, s *sqlstore.Store) error{
	"commit": func(ctx context.Context, s *sqlstore.Store) error {
		_, err := s.Commit(ctx, storage.Write{Key: "b", Value: []byte("1"), Expect: storage.AnyRevision})
		return err
	},
	"revision": func(ctx context.Context, s *sqlstore.Store) error { _, err := s.Revision(ctx); return err },
	"check":    func(ctx context.Context, s *sqlstore.Store) error { return s.Check(ctx) },
	"get":      func(ctx context.Context, s *sqlstore.Store) error { _, err := s.Get(ctx, "a", 0); return err },
	"scan":     func(ctx context.Context, s *sqlstore.Store) error { _, _, err := s.Scan(ctx, "", "", 0); return err },
	"history": func(ctx context.Context, s *sqlstore.Store) error {
		for _, err := range s.History(ctx, "", 0, 1) {
			if err != nil {
				return err
			}
		}
		return nil
	},
}

// eachDatabase runs a test for each call of notices on PostgreSQL and SQLite. change executes
// statements without the stores.
func eachDatabase(t *testing.T, test func(t *testing.T, o sqlstore.Options, notice func(context.Context, *sqlstore.Store) error, change func(statements ...string))) {
	t.Parallel()
	for name, notice := range notices {
		t.Run("PostgreSQL/"+name, func(t *testing.T) {
			t.Parallel()
			o := empty(t)
			test(t, o, notice, func(statements ...string) {
				for _, statement := range statements {
					query(t, o, statement)
				}
			})
		})
		t.Run("SQLite/"+name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "data.db")
			db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			test(t, sqlstore.Options{File: file, Retain: forever}, notice, func(statements ...string) {
				for _, statement := range statements {
					_, err := db.ExecContext(t.Context(), statement)
					require.NoError(t, err)
				}
			})
		})
	}
}

// loseAfter returns the statements that restore the state of a database at a revision.
func loseAfter(revision storage.Revision) []string {
	return []string{
		fmt.Sprint(`DELETE FROM records WHERE revision > `, revision),
		fmt.Sprint(`DELETE FROM commits WHERE revision > `, revision),
		fmt.Sprint(`UPDATE state SET revision = `, revision),
	}
}

func requireLost(t *testing.T, err error, revision storage.Revision) {
	t.Helper()
	var trouble *storage.UnavailableError
	require.ErrorAs(t, err, &trouble)
	require.Equal(t, "the database has lost commits", trouble.Kind)
	require.ErrorContains(t, err, fmt.Sprint("revision ", revision))
}

// TestLossStopsStoreUntilAccept: a store detects missing commits by any call and refuses reads and
// writes from then on. Other stores still read but do not commit. Everything works again after Accept.
func TestLossStopsStoreUntilAccept(t *testing.T) {
	eachDatabase(t, func(t *testing.T, o sqlstore.Options, notice func(context.Context, *sqlstore.Store) error, change func(...string)) {
		ctx := t.Context()
		s := openAt(t, o)
		put(t, s, "a", "1")
		newest := put(t, s, "a", "2")
		require.NoError(t, s.Check(ctx))
		change(loseAfter(1)...)

		requireLost(t, notice(ctx, s), newest)
		requireLost(t, s.Check(ctx), newest)
		_, losses := s.Missing()
		require.Equal(t, 1, losses)
		_, err := s.Get(ctx, "a", 0)
		requireLost(t, err, newest)

		fresh := openAt(t, o)
		requireLost(t, fresh.Check(ctx), newest)
		_, losses = fresh.Missing()
		require.Equal(t, 1, losses)
		rec, err := fresh.Get(ctx, "a", 0)
		require.NoError(t, err)
		require.Equal(t, "1", string(rec.Value))
		for range 2 {
			_, err = fresh.Commit(ctx, storage.Write{Key: "b", Value: []byte("1")})
			requireLost(t, err, newest)
		}

		begin, err := sqlstore.Accept(ctx, o)
		require.NoError(t, err)
		require.Greater(t, begin, newest)
		next := openAt(t, o)
		require.NoError(t, next.Check(ctx))
		for _, err := range next.Watch(ctx, "", newest) {
			require.ErrorIs(t, err, storage.ErrCompacted, "a client that saw a lost commit lists again")
			break
		}
		rec, err = next.Get(ctx, "a", 0)
		require.NoError(t, err)
		require.Equal(t, "1", string(rec.Value))
		require.Greater(t, put(t, next, "b", "1"), begin)
		require.ErrorContains(t, s.Check(ctx), "restart")
		_, err = s.Get(ctx, "a", 0)
		require.ErrorContains(t, err, "restart")
	})
}

// TestLossBehindNewerCommits: a store detects a lost commit even if another commit has its revision and
// newer commits followed. Accept begins above all of them.
func TestLossBehindNewerCommits(t *testing.T) {
	eachDatabase(t, func(t *testing.T, o sqlstore.Options, notice func(context.Context, *sqlstore.Store) error, change func(...string)) {
		ctx := t.Context()
		s := openAt(t, o)
		put(t, s, "a", "1")
		lost := put(t, s, "a", "2")
		newest := lost + 1
		change(fmt.Sprintf(`BEGIN; UPDATE records SET value = 'other' WHERE revision = %[1]d; UPDATE commits SET id = id + 1 WHERE revision = %[1]d;
			INSERT INTO commits SELECT %[2]d, at, id FROM commits WHERE revision = %[1]d; UPDATE state SET revision = %[2]d; COMMIT`, lost, newest))
		ignorant := openAt(t, o)

		requireLost(t, notice(ctx, s), lost)
		requireLost(t, s.Check(ctx), lost)
		_, err := ignorant.Commit(ctx, storage.Write{Key: "d", Value: []byte("1")})
		requireLost(t, err, lost)
		require.NoError(t, ignorant.Close())
		begin, err := sqlstore.Accept(ctx, o)
		require.NoError(t, err)
		require.Greater(t, begin, newest)
		next := openAt(t, o)
		rec, err := next.Get(ctx, "a", 0)
		require.NoError(t, err)
		require.Equal(t, "other", string(rec.Value))
		require.Greater(t, put(t, next, "a", "3"), begin)
	})
}

// TestManyMarksAreCompared: a store compares any number of commits with the database, and stops comparing them
// after a statement that found them all.
func TestManyMarksAreCompared(t *testing.T) {
	eachDatabase(t, func(t *testing.T, o sqlstore.Options, notice func(context.Context, *sqlstore.Store) error, change func(...string)) {
		const newest = 40_000
		require.NoError(t, openAt(t, o).Close()) // creates the tables
		change(fmt.Sprintf(`INSERT INTO commits WITH RECURSIVE n (r) AS (SELECT 1 UNION ALL SELECT r + 1 FROM n WHERE r < %d) SELECT r, 1, r FROM n`, newest),
			fmt.Sprint(`UPDATE state SET revision = `, newest))
		s := openAt(t, o)
		for _, n := range []storage.Revision{1, 2, 16, 17, 2000, newest} {
			sqlstore.Show(s, n)
			if err := notice(t.Context(), s); err != nil {
				require.ErrorIs(t, err, storage.ErrNotFound)
			}
			require.LessOrEqual(t, sqlstore.Shown(s), 2, "%d marks", n) // the store reads by itself, too
		}
		change(`UPDATE commits SET id = 0 WHERE revision IN (7, 9)`)
		sqlstore.Show(s, newest)
		requireLost(t, notice(t.Context(), s), 7)
	})
}

// TestWaitingReadsAddNoMarks: reads that wait for a connection do not add to the commits that each
// statement compares.
func TestWaitingReadsAddNoMarks(t *testing.T) {
	t.Parallel()
	o := sqlstore.Options{File: filepath.Join(t.TempDir(), "data.db"), Retain: forever}
	s, writer := openAt(t, o), openAt(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 5000 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Get(ctx, "a", 0)
			}
		})
	}
	most := 0
	for range 300 {
		put(t, writer, "a", "1")
		most = max(most, sqlstore.Shown(s))
	}
	cancel()
	readers.Wait()
	require.LessOrEqual(t, most, 10, "eight statements that read, one for the newest revision and one that commits")
}

// TestAcceptBeginsAboveUnknownCommits: the revisions of commits that were acknowledged by a server that
// did not come back are not used again, although no remaining server knows of them.
func TestAcceptBeginsAboveUnknownCommits(t *testing.T) {
	t.Parallel()
	o := empty(t)
	reader, writer := openAt(t, o), openAt(t, o)
	put(t, writer, "a", "1")
	known := put(t, writer, "a", "2")
	at, err := reader.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, known, at)
	var acknowledged storage.Revision
	for range 300 {
		acknowledged = put(t, writer, "a", "3")
	}
	require.NoError(t, reader.Close())
	require.NoError(t, writer.Close())
	for _, statement := range loseAfter(1) {
		query(t, o, statement)
	}
	begin, err := sqlstore.Accept(t.Context(), o)
	require.NoError(t, err)
	require.Greater(t, begin, acknowledged)
	require.Greater(t, put(t, openAt(t, o), "a", "4"), acknowledged)
}

// TestAcceptUnderRunningStore: a store that was open during Accept neither reads nor writes afterwards,
// and does not report another loss.
func TestAcceptUnderRunningStore(t *testing.T) {
	eachDatabase(t, func(t *testing.T, o sqlstore.Options, notice func(context.Context, *sqlstore.Store) error, _ func(...string)) {
		s := openAt(t, o)
		put(t, s, "a", "1")
		_, err := sqlstore.Accept(t.Context(), o)
		require.NoError(t, err)
		require.ErrorContains(t, notice(t.Context(), s), "restart")
		_, err = s.Get(t.Context(), "a", 0)
		require.ErrorContains(t, err, "restart")
		_, err = s.Commit(t.Context(), storage.Write{Key: "b", Value: []byte("1")})
		require.ErrorContains(t, err, "restart")
		_, losses := s.Missing()
		require.Equal(t, 1, losses)
		next := openAt(t, o)
		require.NoError(t, next.Check(t.Context()))
		put(t, next, "a", "2")
		require.NoError(t, next.Check(t.Context()))
	})
}

// TestAcceptDeletesHistory: after Accept, only the newest record of each existing key is left.
func TestAcceptDeletesHistory(t *testing.T) {
	t.Parallel()
	o := empty(t)
	s := openAt(t, o)
	put(t, s, "a", "1")
	put(t, s, "a", "2")
	gone := put(t, s, "b", "1")
	_, err := s.Commit(t.Context(), storage.Write{Key: "b", Expect: gone})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = sqlstore.Accept(t.Context(), o)
	require.NoError(t, err)
	db, err := sql.Open("pgx", o.Postgres)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var records, commits int
	require.NoError(t, db.QueryRowContext(t.Context(), fmt.Sprintf(`SELECT (SELECT count(*) FROM %[1]q.records), (SELECT count(*) FROM %[1]q.commits)`, o.Schema)).
		Scan(&records, &commits))
	require.Equal(t, []int{1, 1}, []int{records, commits})
}
