package badgerstore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// begin writes the groups of a batch, but only the selected entries of its commits, as a crash may leave
// them, and closes the store.
func begin(t *testing.T, s *Store, events []storage.Event, chosen func(i int) bool) {
	t.Helper()
	r := &request{ctx: t.Context(), done: make(chan struct{})}
	r.do = func() error {
		heads := make([]*badger.Entry, len(events))
		for i, e := range events {
			if e.Deleted() {
				continue
			}
			var pieces []*badger.Entry
			heads[i], pieces = seal(e.Record, s.piece)
			for _, piece := range pieces {
				put := func(batch *badger.WriteBatch) error { return batch.SetEntryAt(piece, uint64(e.Revision)) }
				if err := s.flush(s.piece, put); err != nil {
					return err
				}
			}
		}
		return s.flush(s.batch, func(batch *badger.WriteBatch) error {
			return putGroups(batch, runs(events), events, heads)
		}, func(batch *badger.WriteBatch) error {
			for i, e := range events {
				switch {
				case !chosen(i):
				case e.Deleted():
					if err := batch.DeleteAt(recordKey(e.Key), uint64(e.Revision)); err != nil {
						return err
					}
				default:
					if err := batch.SetEntryAt(heads[i], uint64(e.Revision)); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, s.submit(r))
	require.NoError(t, r.err)
	require.NoError(t, s.Close())
}

// TestUnfinishedGroupIsCompleted checks that Open and Salvage complete a commit of several writes of which
// only a part is on the disk, and that later writes to its keys are kept.
func TestUnfinishedGroupIsCompleted(t *testing.T) {
	const all = 4
	for part := range 1 << all {
		t.Run(fmt.Sprintf("%04b", part), func(t *testing.T) {
			t.Parallel()
			ctx, dir := t.Context(), t.TempDir()
			o := Options{Dir: dir, Retain: -1}
			s, err := Open(o)
			require.NoError(t, err)
			base, err := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("old")}, storage.Write{Key: "b", Value: []byte("old")})
			require.NoError(t, err)
			old := func(key string) storage.Record { return storage.Record{Key: key, Value: []byte("old"), Revision: base} }
			event := func(key string, value []byte, prev storage.Record) storage.Event {
				return storage.Event{Record: storage.Record{Key: key, Value: value, Revision: base + 1}, Prev: prev}
			}
			large := make([]byte, 3*s.piece)
			events := []storage.Event{
				event("a", []byte("new"), old("a")), event("b", nil, old("b")), event("c", large, storage.Record{}), event("d", []byte("x"), storage.Record{}),
			}
			begin(t, s, events, func(i int) bool { return part&(1<<i) != 0 })

			salvaged := filepath.Join(t.TempDir(), "salvaged")
			report, err := Salvage(ctx, dir, salvaged)
			require.NoError(t, err)
			require.True(t, report.Intact(), report)
			for _, dir := range []string{salvaged, dir} {
				s, err = Open(Options{Dir: dir, Retain: -1})
				require.NoError(t, err)
				require.NoError(t, s.Check(ctx))
				for _, e := range events {
					rec, err := s.Get(ctx, e.Key, 0)
					if e.Deleted() {
						require.ErrorIs(t, err, storage.ErrNotFound)
						continue
					}
					require.NoError(t, err)
					require.Equal(t, e.Record, rec)
				}
				if dir == salvaged {
					require.NoError(t, s.Close())
				}
			}
			for commit, err := range s.Watch(ctx, "", base) {
				require.NoError(t, err)
				require.Equal(t, events, commit)
				break
			}
			for _, key := range []string{"a", "c", "d"} { // nothing comes back
				last, err := s.Commit(ctx, storage.Write{Key: key, Expect: base + 1})
				require.NoError(t, err)
				require.NoError(t, s.Compact(ctx, last))
			}
			require.NoError(t, s.db.Flatten(1))
			for range 2 {
				require.NoError(t, s.Close())
				s, err = Open(o)
				require.NoError(t, err)
				require.NoError(t, s.Check(ctx))
				require.Zero(t, s.Stats().Keys)
				require.Zero(t, countPieces(t, s))
			}
			require.NoError(t, s.Close())
		})
	}
}

// TestDamagedGroupPreventsOpen checks that Open fails if it cannot determine whether a commit is complete.
func TestDamagedGroupPreventsOpen(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	revision, err := s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")}, storage.Write{Key: "b", Value: []byte("x")})
	require.NoError(t, err)
	require.NoError(t, s.flush(100, func(batch *badger.WriteBatch) error {
		return batch.SetEntryAt(badger.NewEntry(groupKey(0), []byte("none")), uint64(revision+1))
	}))
	require.NoError(t, s.Close())
	_, err = Open(Options{Dir: dir, Retain: -1})
	require.ErrorIs(t, err, errFilesDamaged)
	report, err := Inspect(t.Context(), dir)
	require.NoError(t, err)
	require.False(t, report.Intact())
	require.Equal(t, 2, report.Records)
}

// TestTooLargeCommitChangesNothing checks that a commit that is refused changes nothing.
func TestTooLargeCommitChangesNothing(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), memTable: smallTable})
	require.NoError(t, err)
	var many []storage.Write
	for i := range storage.CommitLength { // the most that every store takes, see CommitLength
		value := make([]byte, storage.CommitBytes/storage.CommitLength-5)
		if i == 7 {
			value = make([]byte, s.piece)
		}
		many = append(many, storage.Write{Key: fmt.Sprintf("m%04d", i), Value: value, Expect: storage.AnyRevision})
	}
	_, err = s.Commit(t.Context(), many...)
	require.NoError(t, err)
	for i := range many {
		many[i].Value = nil
	}
	_, err = s.Commit(t.Context(), many...)
	require.NoError(t, err)
	many = nil
	for i := range 2000 {
		many = append(many, storage.Write{Key: fmt.Sprint("k", i), Value: []byte("x")})
	}
	long := func(key string) storage.Write { return storage.Write{Key: key, Value: make([]byte, s.piece+1)} }
	for _, ws := range [][]storage.Write{
		many,
		{long("a"), long("b")},
		{{Key: string(make([]byte, groupBytes/2)), Value: []byte("x")}, {Key: string(make([]byte, groupBytes/2+1)), Value: []byte("x")}},
		{{Key: "a", Value: []byte("x")}, {Key: "b", Value: make([]byte, MaxValueBytes+1)}},
	} {
		_, err := s.Commit(t.Context(), ws...)
		require.ErrorIs(t, err, storage.ErrTooLarge)
	}
	require.Zero(t, s.Stats().Keys)
	require.NoError(t, s.Close())
}

func FuzzGroup(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeGroup([]entry{{key: recordKey("a"), encoding: encodingSealed, value: []byte("value")}, {key: recordKey("b"), deleted: true}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, encodeSum(data)} {
			entries, ok := decodeGroup(7, data)
			if !ok {
				continue
			}
			again, ok := decodeGroup(7, encodeGroup(entries))
			require.True(t, ok)
			require.Equal(t, entries, again)
		}
	})
}
