package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// edit changes entries of a closed store directly in the database.
func edit(t *testing.T, dir string, change func(db *badger.DB)) {
	o := settings(Options{Dir: dir})
	o.Logger = nil
	o.ValueLogFileSize = 64 << 20 // as older releases had it
	db, err := badger.OpenManaged(o)
	require.NoError(t, err)
	change(db)
	require.NoError(t, db.Close())
}

func putEntry(t *testing.T, db *badger.DB, e *badger.Entry, version storage.Revision) {
	batch := db.NewManagedWriteBatch()
	defer batch.Cancel()
	if e.Value == nil {
		require.NoError(t, batch.DeleteAt(e.Key, uint64(version)))
	} else {
		require.NoError(t, batch.SetEntryAt(e, uint64(version)))
	}
	require.NoError(t, batch.Flush())
}

// TestDamagedRecord checks that reading a damaged record, also in a scan, fails with its key, that other
// records are served, and that it can be replaced and deleted.
func TestDamagedRecord(t *testing.T) {
	ctx, big := context.Background(), bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	for name, spoil := range map[string]func(db *badger.DB, at storage.Revision){
		"flipped": func(db *badger.DB, at storage.Revision) {
			head, _ := seal(storage.Record{Key: "b", Value: []byte("right"), Revision: at}, pieceBytes)
			head.Value[0] ^= 1
			putEntry(t, db, head, at)
		},
		"another revision's": func(db *badger.DB, at storage.Revision) {
			head, _ := seal(storage.Record{Key: "b", Value: []byte("right"), Revision: at - 1}, pieceBytes)
			putEntry(t, db, head, at)
		},
		"empty": func(db *badger.DB, at storage.Revision) {
			putEntry(t, db, badger.NewEntry(recordKey("b"), []byte{}).WithMeta(encodingSealed), at)
		},
		"unknown encoding": func(db *badger.DB, at storage.Revision) {
			putEntry(t, db, badger.NewEntry(recordKey("b"), []byte("right")).WithMeta(99), at)
		},
		"a piece missing": func(db *badger.DB, at storage.Revision) {
			putEntry(t, db, badger.NewEntry(pieceKey(at, 3), nil), at)
		},
		"a piece changed": func(db *badger.DB, at storage.Revision) {
			putEntry(t, db, badger.NewEntry(pieceKey(at, 3), make([]byte, pieceBytes)).WithMeta(encodingPiece), at)
		},
		"head cut": func(db *badger.DB, at storage.Revision) {
			putEntry(t, db, badger.NewEntry(recordKey("b"), make([]byte, 5)).WithMeta(encodingPieces), at)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := Options{Dir: dir, Retain: -1}
			s, err := Open(o)
			require.NoError(t, err)
			var at storage.Revision
			for _, key := range []string{"a", "b", "c"} {
				revision, err := s.Commit(ctx, storage.Write{Key: key, Value: big})
				require.NoError(t, err)
				if key == "b" {
					at = revision
				}
			}
			require.NoError(t, s.Close())
			edit(t, dir, func(db *badger.DB) { spoil(db, at) })

			for _, mend := range []bool{false, true} {
				s, err = Open(o)
				require.NoError(t, err)
				checkDamaged(t, s, at, big)
				if mend {
					_, err = s.Commit(ctx, storage.Write{Key: "b", Value: []byte("new"), Expect: at})
				} else {
					_, err = s.Commit(ctx, storage.Write{Key: "b", Value: []byte("new"), Expect: at + 100})
					require.Error(t, err)
					require.NoError(t, s.Close())
					continue
				}
				require.NoError(t, err)
				require.NoError(t, s.Check(ctx))
				rec, err := s.Get(ctx, "b", 0)
				require.NoError(t, err)
				require.Equal(t, "new", string(rec.Value))
			}
			require.NoError(t, s.Close())
		})
	}
}

// TestInspectReportsDamagedRecords checks that damaged records are reported by key and not salvaged.
func TestInspectReportsDamagedRecords(t *testing.T) {
	ctx, dir, out := context.Background(), t.TempDir(), t.TempDir()
	edit(t, dir, func(db *badger.DB) {
		good, _ := seal(storage.Record{Key: "a", Value: []byte("right"), Revision: 1}, pieceBytes)
		putEntry(t, db, good, 1)
		bad, _ := seal(storage.Record{Key: "b", Value: []byte("right"), Revision: 2}, pieceBytes)
		bad.Value[0] ^= 1
		putEntry(t, db, bad, 2)
		head, pieces := seal(storage.Record{Key: "c", Value: make([]byte, 3*minPiece), Revision: 3}, minPiece)
		putEntry(t, db, head, 3)
		putEntry(t, db, pieces[1], 3)
	})
	for _, look := range []func() (*Report, error){
		func() (*Report, error) { return Inspect(ctx, dir) },
		func() (*Report, error) { return Salvage(ctx, dir, out) },
	} {
		report, err := look()
		require.NoError(t, err)
		require.False(t, report.Intact())
		require.Equal(t, 1, report.Records)
		require.Len(t, report.Damaged, 2)
		require.Equal(t, "b", report.Damaged[0].Key)
		require.ErrorContains(t, &report.Damaged[1], "2 of its 3 pieces are missing")
	}
	s, err := Open(Options{Dir: out})
	require.NoError(t, err)
	require.Equal(t, 1, s.Stats().Keys)
	require.NoError(t, s.Close())
}

func checkDamaged(t *testing.T, s *Store, at storage.Revision, want []byte) {
	ctx := context.Background()
	var damaged *storage.DamagedError
	_, err := s.Get(ctx, "b", 0)
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, "b", damaged.Key)
	require.Equal(t, at, damaged.Revision)
	_, records, err := s.Scan(ctx, "", "", 0)
	require.NoError(t, err)
	var keys []string
	for rec, err := range records {
		keys = append(keys, rec.Key)
		if rec.Key == "b" {
			require.ErrorAs(t, err, &damaged)
			require.Empty(t, rec.Value)
			require.Equal(t, at, rec.Revision)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, rec.Value)
	}
	require.Equal(t, []string{"a", "b", "c"}, keys)
	for _, err := range s.Watch(ctx, "", 0) {
		if err != nil {
			require.ErrorIs(t, err, storage.ErrCompacted)
			break
		}
	}
	require.ErrorAs(t, s.Check(ctx), &damaged)
	n, losses := s.Missing()
	require.Equal(t, 1, n)
	require.Zero(t, losses)
	require.Equal(t, 1, s.Stats().Damaged)
}

// TestDeletedDamagedRecordStaysDeleted checks that a damaged record can be deleted and does not reappear.
func TestDeletedDamagedRecordStaysDeleted(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	at, err := s.Commit(ctx, storage.Write{Key: "a", Value: make([]byte, 1<<20)})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	edit(t, dir, func(db *badger.DB) { putEntry(t, db, badger.NewEntry(pieceKey(at, 0), nil), at) })
	for round := range 2 {
		s, err = Open(Options{Dir: dir})
		require.NoError(t, err)
		require.Equal(t, 1-round, s.Stats().Damaged)
		_, err = s.Commit(ctx, storage.Write{Key: "a", Expect: storage.AnyRevision})
		if !errors.Is(err, storage.ErrNotFound) {
			require.NoError(t, err)
		}
		require.NoError(t, s.Check(ctx))
		_, err = s.Get(ctx, "a", 0)
		require.ErrorIs(t, err, storage.ErrNotFound)
		require.NoError(t, s.Close())
	}
}

func countPieces(t *testing.T, s *Store) (n int) {
	txn := s.db.NewTransactionAt(1<<62, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(piecePrefix)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		n++
	}
	return n
}

// TestPiecesAreDeletedWithValues checks that a large value can be read until it is compacted, that its pieces
// are deleted then, and that the pieces of an unfinished write are deleted at the next start.
func TestPiecesAreDeletedWithValues(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	o := Options{Dir: dir, Retain: -1}
	s, err := Open(o)
	require.NoError(t, err)
	const each = 4
	big := bytes.Repeat([]byte("abcd"), each*pieceBytes/4)
	put := func(value []byte) storage.Revision {
		revision, err := s.Commit(ctx, storage.Write{Key: "a", Value: value, Expect: storage.AnyRevision})
		require.NoError(t, err)
		return revision
	}
	reopen := func() {
		require.NoError(t, s.Close())
		s, err = Open(o)
		require.NoError(t, err)
	}
	read := func(at storage.Revision) {
		rec, err := s.Get(ctx, "a", at)
		require.NoError(t, err)
		require.Equal(t, big, rec.Value)
	}
	first := put(big)
	second := put(big)
	third := put([]byte("small"))
	require.Equal(t, 2*each, countPieces(t, s))
	reopen()
	read(first)
	read(second)
	require.NoError(t, s.Compact(ctx, second))
	require.Equal(t, each, countPieces(t, s))
	read(second)
	reopen()
	read(second)
	require.NoError(t, s.Compact(ctx, third))
	require.Zero(t, countPieces(t, s))

	fourth := put(big)
	require.NoError(t, s.flush(1, func(batch *badger.WriteBatch) error {
		return batch.SetEntryAt(badger.NewEntry(pieceKey(fourth+1, 0), big[:9]).WithMeta(encodingPiece), uint64(fourth)+1)
	}))
	require.Equal(t, each+1, countPieces(t, s))
	reopen()
	require.Equal(t, each, countPieces(t, s))
	read(fourth)
	require.NoError(t, s.Close())
}

// TestValueLogIsUnused checks that no value is written to the value log, no matter how large it is.
func TestValueLogIsUnused(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	for i, n := range []int{0, pieceBytes - 1, pieceBytes, pieceBytes + 1, 1 << 20, MaxValueBytes} {
		_, err := s.Commit(ctx, storage.Write{Key: string(rune('a' + i)), Value: bytes.Repeat([]byte("x"), n)})
		require.NoError(t, err)
		rec, err := s.Get(ctx, string(rune('a'+i)), 0)
		require.NoError(t, err)
		require.Len(t, rec.Value, n)
	}
	require.NoError(t, s.Close())
	logs, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	require.NoError(t, err)
	for _, path := range logs {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(logHeader))
	}
}

// TestRecordsWithoutChecksum checks that records of older releases, which have no checksum, can be read.
func TestRecordsWithoutChecksum(t *testing.T) {
	dir := t.TempDir()
	edit(t, dir, func(db *badger.DB) {
		putEntry(t, db, badger.NewEntry(recordKey("a"), []byte("old")), 1)
		putEntry(t, db, badger.NewEntry(recordKey("b"), make([]byte, 2<<20)), 2)
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, witnessFile), []byte("2\n"), 0o600))
	s, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	for key, n := range map[string]int{"a": 3, "b": 2 << 20} {
		rec, err := s.Get(context.Background(), key, 0)
		require.NoError(t, err)
		require.Len(t, rec.Value, n)
	}
	require.NoError(t, s.Close())
	logs, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	require.NoError(t, err)
	for _, path := range logs {
		require.NoError(t, os.Remove(path))
	}
	s, err = Open(Options{Dir: dir})
	require.NoError(t, err)
	var damaged *storage.DamagedError
	_, err = s.Get(context.Background(), "b", 0)
	require.ErrorAs(t, err, &damaged)
	require.NoError(t, s.Close())
}

func FuzzReadFiles(f *testing.F) {
	dir := f.TempDir()
	s, err := Open(Options{Dir: dir})
	require.NoError(f, err)
	_, err = s.Commit(context.Background(), storage.Write{Key: "a", Value: []byte("value")})
	require.NoError(f, err)
	log, err := os.ReadFile(filepath.Join(dir, "00001.mem"))
	require.NoError(f, err)
	require.NoError(f, s.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(f, err)
	for _, path := range append(tables, filepath.Join(dir, witnessFile)) {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(log[:200])
	f.Add([]byte("12\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), witnessFile)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		_, _ = readTable(path, func(entry) error { return nil })
		_, _ = readLog(path, func(entry) error { return nil })
		_, _ = readWitness(filepath.Dir(path))
		_ = blockEntries(data, func(entry) error { return nil })
	})
}
