package badgerstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// churn is a store with tiny memtables, whose history is spread over the levels of the database and compacted
// there, and the expected content of the store.
type churn struct {
	t      *testing.T
	s      *Store
	dir    string
	events []storage.Event
	now    map[string]storage.Record
}

func (c *churn) open() {
	var err error
	c.s, err = Open(Options{Dir: c.dir, Retain: -1, memTable: 256 << 10})
	require.NoError(c.t, err)
}

func (c *churn) write(r *rand.Rand, n int) {
	for range n {
		w := storage.Write{Key: fmt.Sprintf("k/%d", r.IntN(40)), Expect: storage.AnyRevision}
		if c.now[w.Key].Revision == 0 || r.IntN(4) > 0 {
			w.Value = make([]byte, r.IntN(3000))
			for i := range w.Value {
				w.Value[i] = byte(r.Uint32())
			}
		}
		revision, err := c.s.Commit(context.Background(), w)
		require.NoError(c.t, err)
		rec := storage.Record{Key: w.Key, Value: w.Value, Revision: revision}
		c.events = append(c.events, storage.Event{Record: rec, Prev: c.now[w.Key]})
		if c.now[w.Key] = rec; w.Value == nil {
			delete(c.now, w.Key)
		}
	}
}

// check reads all commits after a revision and compares them with the expected ones.
func (c *churn) check(floor storage.Revision) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	i, _ := slices.BinarySearchFunc(c.events, floor+1, func(e storage.Event, at storage.Revision) int {
		return int(e.Revision - at)
	})
	for commit, err := range c.s.Watch(ctx, "", floor) {
		require.NoError(c.t, err)
		require.Less(c.t, i, len(c.events))
		require.Equal(c.t, c.events[i:i+1], commit)
		e := commit[0]
		if e.Deleted() {
			_, err := c.s.Get(ctx, e.Key, e.Revision)
			require.ErrorIs(c.t, err, storage.ErrNotFound)
		} else {
			rec, err := c.s.Get(ctx, e.Key, e.Revision)
			require.NoError(c.t, err)
			require.Equal(c.t, e.Record, rec)
		}
		if i++; i == len(c.events) {
			break
		}
	}
	require.Equal(c.t, len(c.events), i)
	_, records, err := c.s.Scan(ctx, "", "", 0)
	require.NoError(c.t, err)
	n := 0
	for rec, err := range records {
		require.NoError(c.t, err)
		require.Equal(c.t, c.now[rec.Key], rec)
		n++
	}
	require.Len(c.t, c.now, n)
	require.Equal(c.t, n, c.s.Stats().Keys)
}

func TestHistoryInLevels(t *testing.T) {
	c := &churn{t: t, dir: t.TempDir(), now: map[string]storage.Record{}}
	r := rand.New(rand.NewPCG(1, 2))
	floor := storage.Revision(0)
	for round := range 4 {
		c.open()
		if round > 0 {
			c.check(floor)
		}
		c.write(r, 400)
		c.check(floor)
		floor = c.events[len(c.events)-300].Revision
		if round == 3 {
			for key := range c.now {
				_, err := c.s.Commit(context.Background(), storage.Write{Key: key, Expect: storage.AnyRevision})
				require.NoError(t, err)
			}
			clear(c.now)
			floor = c.s.published()
			c.events = nil
		}
		require.NoError(t, c.s.Compact(context.Background(), floor))
		require.NoError(t, mergeAll(c.s))
		if round < 3 {
			c.check(floor)
		}
		require.NoError(t, c.s.Close())
	}
	c.open()
	require.Equal(t, floor, c.s.published())
	require.Zero(t, c.s.Stats().Keys)
	require.NoError(t, c.s.Close())
}

// mergeAll merges all tables of a store. There must be no concurrent writes.
func mergeAll(s *Store) error {
	return s.perform(context.Background(), func() error { // no merge starts meanwhile
		s.committer.flattener.done.Wait()
		return s.db.Flatten(1)
	})
}

// TestExpireWithinTenthOfRetention checks that expired history is compacted within a tenth of the retention
// time, and without an fsync if nothing was committed.
func TestExpireWithinTenthOfRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(Options{Dir: dir, Retain: time.Hour})
		require.NoError(t, err)
		put := func() storage.Revision {
			revision, err := s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x"), Expect: storage.AnyRevision})
			require.NoError(t, err)
			return revision
		}
		put()
		time.Sleep(30 * time.Minute)
		second := put()
		time.Sleep(37 * time.Minute)
		require.EqualValues(t, 1, s.floor.Load())
		time.Sleep(30 * time.Minute)
		require.EqualValues(t, second, s.floor.Load())
		fsyncs := s.Stats().Fsyncs
		time.Sleep(3 * time.Hour)
		require.Equal(t, fsyncs, s.Stats().Fsyncs)
		third := put()
		require.NoError(t, s.Close())
		time.Sleep(2 * time.Hour)
		s, err = Open(Options{Dir: dir, Retain: time.Hour})
		require.NoError(t, err)
		defer s.Close()
		require.EqualValues(t, second, s.floor.Load())
		time.Sleep(7 * time.Minute)
		require.EqualValues(t, third, s.floor.Load(), "across restarts")
	})
}
