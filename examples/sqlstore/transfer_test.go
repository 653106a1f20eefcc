package sqlstore_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/memstore"
)

// history returns everything that a store can read from a revision on: the records at that revision,
// and the later commits.
func history(t testing.TB, s storage.Backend, oldest, newest storage.Revision) (records []storage.Record, commits [][]storage.Event) {
	t.Helper()
	_, all, err := s.Scan(t.Context(), "", "", oldest)
	require.NoError(t, err)
	for rec, err := range all {
		require.NoError(t, err)
		records = append(records, rec)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for events, err := range s.Watch(ctx, "", oldest) {
		require.NoError(t, err)
		if commits = append(commits, events); events[0].Revision == newest {
			break
		}
	}
	return records, commits
}

// TestCopyAndBackupBetweenDatabases: copies and backups from memory to SQLite, PostgreSQL and back
// preserve revisions, history and stamps.
func TestCopyAndBackupBetweenDatabases(t *testing.T) {
	t.Parallel()
	memory := func() storage.Backend {
		s := memstore.New(memstore.Options{Retain: -1, MaxEvents: -1, MaxBytes: -1})
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	first := memory()
	_, err := first.(storage.Stamper).Stamp(t.Context(), "names", "x")
	require.NoError(t, err)
	for i := range 300 {
		put(t, first, fmt.Sprint("k", i%70), strings.Repeat(fmt.Sprint(i), i*10))
		if i%7 == 0 {
			_, err := first.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k", i%70), Expect: storage.AnyRevision})
			require.NoError(t, err)
		}
	}
	require.NoError(t, first.Compact(t.Context(), 120))
	newest, err := first.Revision(t.Context())
	require.NoError(t, err)
	wantRecords, wantCommits := history(t, first, 120, newest)
	stores := []storage.Backend{first, openAt(t, sqlstore.Options{File: filepath.Join(t.TempDir(), "data.db")}), openAt(t, empty(t)), memory()}
	for i, to := range stores[1:] {
		from, restored := stores[i], memory()
		report, err := backup.Copy(t.Context(), from, to, backup.Options{})
		require.NoError(t, err)
		require.True(t, report.RevisionsKept)
		var file bytes.Buffer
		_, err = backup.Backup(t.Context(), to, &file, backup.Options{})
		require.NoError(t, err)
		_, err = backup.Restore(t.Context(), restored, backup.Options{}, &file)
		require.NoError(t, err)
		for _, s := range []storage.Backend{to, restored} {
			records, commits := history(t, s, 120, newest)
			require.Equal(t, wantRecords, records)
			require.Equal(t, wantCommits, commits)
			stamps, err := s.(storage.StampReader).Stamps(t.Context())
			require.NoError(t, err)
			require.Equal(t, map[string]string{"names": "x"}, stamps)
			_, err = s.Get(t.Context(), "k1", 119)
			require.ErrorIs(t, err, storage.ErrCompacted)
			require.EqualValues(t, newest+1, put(t, s, "k1", "later"))
		}
		wantRecords, wantCommits = history(t, to, 120, newest+1)
		newest++
	}
}

// TestSlowImport: the records of an import may arrive more slowly than the time for which other
// processes wait for a commit.
func TestSlowImport(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for as long as PostgreSQL waits for a process that has stopped")
	}
	s := openAt(t, empty(t))
	err := s.Import(t.Context(), nil, 0, func(yield func(storage.Record, error) bool) {
		if yield(storage.Record{Key: "a", Value: []byte("1"), Revision: 1}, nil) {
			time.Sleep(11 * time.Second)
			yield(storage.Record{Key: "b", Value: []byte("1"), Revision: 2}, nil)
		}
	})
	require.NoError(t, err)
	require.EqualValues(t, 3, put(t, s, "c", "1"))
}

// TestUnknownImport: the outcome of an unanswered import is determined by the oldest and newest
// revisions of the store. It stays unknown if the import had no records.
func TestUnknownImport(t *testing.T) {
	t.Parallel()
	s := openAt(t, empty(t))
	require.Error(t, sqlstore.ImportOutcome(t.Context(), s, 0, 0))
	require.NoError(t, s.Import(t.Context(), nil, 3, func(yield func(storage.Record, error) bool) {
		yield(storage.Record{Key: "a", Value: []byte("1"), Revision: 5}, nil)
	}))
	require.NoError(t, sqlstore.ImportOutcome(t.Context(), s, 3, 5))
	require.Error(t, sqlstore.ImportOutcome(t.Context(), s, 2, 5))
	require.Error(t, sqlstore.ImportOutcome(t.Context(), s, 3, 4))
}
