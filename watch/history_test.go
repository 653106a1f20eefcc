package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

// model has the objects of a type at each revision: a map from key to "key@revision value".
type model []map[string]string

// churn writes n random changes of two types and returns the model of things, whose first element is the state before
// them. The last change is a change of things, for which drainAll waits.
func (w *world) churn(rng *rand.Rand, n int) model {
	state := make(map[string]string)
	for _, e := range w.set.Cache(things).List(query{}, "", 0).Entries {
		state[e.Key] = showOne(e)
	}
	m := model{maps.Clone(state)}
	for i := range n {
		key := fmt.Sprintf("%s/o%d", []string{"a", "a-b", "b"}[rng.IntN(3)], rng.IntN(5))
		switch _, there := state[key]; {
		case i < n-1 && rng.IntN(4) == 0:
			w.put(others, key, "", "other")
		case i < n-1 && rng.IntN(4) == 0:
			w.several(rng, state, fmt.Sprint(i))
		case there && rng.IntN(3) == 0:
			w.delete(things, key)
			delete(state, key)
		default:
			value := fmt.Sprint(i)
			rev := w.put(things, key, fmt.Sprintf("s=%d", rng.IntN(2)), value)
			state[key] = fmt.Sprintf("%s@%d %s", key, rev, value)
		}
		m = append(m, maps.Clone(state))
	}
	return m
}

// several writes several objects in a single commit.
func (w *world) several(rng *rand.Rand, state map[string]string, value string) {
	writes := []storage.Write{{Key: others + "a/o0", Value: object("", value), Expect: storage.AnyRevision}}
	var put []string
	for i := range 5 {
		key := fmt.Sprintf("a/o%d", i)
		write := storage.Write{Key: things + key, Expect: storage.AnyRevision}
		switch _, there := state[key]; {
		case there && rng.IntN(3) == 0:
			delete(state, key)
		case rng.IntN(2) == 0:
			write.Value = object("", value)
			put = append(put, key)
		default:
			continue
		}
		writes = append(writes, write)
	}
	rev, err := w.store.Commit(w.t.Context(), writes...)
	require.NoError(w.t, err)
	require.NoError(w.t, w.set.Wait(w.t.Context(), rev))
	for _, key := range put {
		state[key] = fmt.Sprintf("%s@%d %s", key, rev, value)
	}
}

func (m model) at(i int, prefix string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(m[i])) {
		if strings.HasPrefix(key, prefix) {
			out = append(out, m[i][key])
		}
	}
	return out
}

// events returns the expected events of a watch after state i.
func (m model) events(i int, base storage.Revision) []string {
	var out []string
	for ; i+1 < len(m); i++ {
		rev := base + storage.Revision(i+1)
		changed := map[string]string{}
		for key, now := range m[i+1] {
			if before, ok := m[i][key]; !ok {
				changed[key] = "ADDED " + now
			} else if before != now {
				changed[key] = "MODIFIED " + now
			}
		}
		for key, before := range m[i] {
			if _, ok := m[i+1][key]; !ok {
				_, value, _ := strings.Cut(before, " ")
				changed[key] = fmt.Sprintf("DELETED %s@%d %s", key, rev, value)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(changed)) {
			out = append(out, changed[key])
		}
	}
	return out
}

func (w *world) checkEveryResume(m model, base storage.Revision) {
	w.t.Helper()
	for i := range m {
		cur, err := w.set.Cache(things).Watch(query{}, base+storage.Revision(i))
		require.NoError(w.t, err)
		require.Equal(w.t, m.events(i, base), drainAll(w.t, cur), "after revision %d", int(base)+i)
		require.Equal(w.t, w.set.Revision(), cur.Revision())
	}
}

func (w *world) checkEveryList(m model, base storage.Revision) {
	w.t.Helper()
	c := w.set.Cache(things)
	for i := range m {
		rev := base + storage.Revision(i)
		for _, prefix := range []string{"", "a/", "b/", "none/", "a"} {
			for _, limit := range []int{0, 1, 3} {
				if rev == 0 {
					continue
				}
				var got []string
				for start, first := "", true; first || start != ""; first = false {
					p, err := c.ListAt(w.t.Context(), rev, query{Prefix: prefix}, start, limit)
					require.NoError(w.t, err, "at %d", rev)
					require.Equal(w.t, rev, p.Revision)
					got = append(got, show(p.Entries)...)
					require.Len(w.t, m.at(i, prefix), len(got)+int(p.Remaining))
					require.Equal(w.t, p.Next == "", p.Remaining == 0)
					start = p.Next
				}
				require.Equal(w.t, m.at(i, prefix), got, "prefix %q at %d", prefix, rev)
			}
		}
	}
}

func TestEveryRevisionFromTheLog(t *testing.T) {
	w := newWorld(t, options{})
	m := w.churn(rand.New(rand.NewPCG(1, 2)), 200)
	w.checkEveryResume(m, 0)
	w.checkEveryList(m, 0)
}

func TestEveryRevisionFromTheBackend(t *testing.T) {
	stores := map[string]func(t *testing.T) storage.Backend{
		"memstore": func(t *testing.T) storage.Backend { return memstore.New(memstore.Options{}) },
		"badgerstore": func(t *testing.T) storage.Backend {
			s, err := badgerstore.Open(badgerstore.Options{Dir: t.TempDir()})
			require.NoError(t, err)
			return s
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Run("short log", func(t *testing.T) {
				w := openWorld(t, open(t), options{MaxEvents: 5})
				m := w.churn(rand.New(rand.NewPCG(3, 4)), 60)
				// With 5 changes in the log, the earlier ones come from the store.
				w.checkEveryResume(m, 0)
				w.checkEveryList(m, 0)
			})
			t.Run("after a restart", func(t *testing.T) {
				first := openWorld(t, open(t), options{})
				m := first.churn(rand.New(rand.NewPCG(5, 6)), 60)
				h, err := openSet(t.Context(), first.store, options{})
				require.NoError(t, err)
				defer h.Close()
				w := &world{t, first.store, h}
				w.checkEveryResume(m, 0)
				w.checkEveryList(m, 0)
				more := w.churn(rand.New(rand.NewPCG(7, 8)), 30)
				w.checkEveryResume(append(m, more[1:]...), 0)
			})
		})
	}
}

func TestHistoryEndsWithAChangeOfAnotherType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newWorld(t, options{})
		first.put(things, "a/x", "", "1")
		first.put(things, "a/x", "", "2")
		first.put(others, "a/x", "", "1")
		h, err := openSet(t.Context(), first.store, options{})
		require.NoError(t, err)
		defer h.Close()
		cur, err := h.Cache(things).Watch(query{}, 1)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		events, err := cur.Next(ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"MODIFIED a/x@2 2"}, showEvents(events))
		assert.Equal(t, storage.Revision(3), cur.Revision())
	})
}

// TestHistoryIsReadIncrementally checks that the reads before the first change do not depend on the length of the
// history, that a watch can be resumed where it stopped, and that each change is read once in total.
func TestHistoryIsReadIncrementally(t *testing.T) {
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	w := openWorld(t, store, options{MaxEvents: 10})
	const n = 20 * historyBatch
	for i := range n {
		w.put(things, fmt.Sprintf("a/o%d", i%50), "", fmt.Sprint(i))
	}
	before, after, reads := store.Count(faultinject.OpEvent), storage.Revision(0), 0
	for after < n-10 {
		cur, err := w.set.Cache(things).Watch(query{}, after)
		require.NoError(t, err)
		events, err := cur.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, after+1, events[0].Revision)
		require.LessOrEqual(t, len(events), historyBatch)
		for i, e := range events {
			require.Equal(t, events[0].Revision+storage.Revision(i), e.Revision)
		}
		after = cur.Revision()
		require.Equal(t, events[len(events)-1].Revision, after)
		if reads++; reads == 1 {
			require.LessOrEqual(t, store.Count(faultinject.OpEvent)-before, historyBatch)
		}
	}
	require.LessOrEqual(t, store.Count(faultinject.OpEvent)-before, n+reads)
}

// TestHistoryContinuesInTheLog checks a cursor that reads the history while the log drops commits.
func TestHistoryContinuesInTheLog(t *testing.T) {
	w := newWorld(t, options{MaxEvents: 10})
	for i := range 3 * historyBatch {
		w.put(things, "a/x", "", fmt.Sprint(i))
	}
	cur, err := w.set.Cache(things).Watch(query{}, 1)
	require.NoError(t, err)
	for next, last := storage.Revision(2), w.set.Revision(); next <= last; {
		events, err := cur.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			require.Equal(t, next, e.Revision)
			next++
		}
		if last < 6*historyBatch {
			for range 30 {
				last = w.put(things, "a/x", "", "more")
			}
		}
	}
}

// TestRevisionOfCacheAheadOfCacheSet checks a cache that shows a commit before CacheSet.Revision has advanced: its
// lists must have the revision of that commit.
func TestRevisionOfCacheAheadOfCacheSet(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	w.put(things, "a/x", "", "1")
	c.apply([]change[*thing]{{cache: c, key: "a/x", revision: 2, entry: newThing(storage.Record{Key: "a/x", Revision: 2, Value: object("", "2")})}}, time.Now())
	assert.Equal(t, storage.Revision(1), w.set.Revision())
	assert.Equal(t, storage.Revision(2), c.List(query{}, "", 0).Revision)
	entries, cur := c.ListAndWatch(query{})
	assert.Equal(t, []string{"a/x@2 2"}, show(entries))
	assert.Equal(t, storage.Revision(2), cur.Revision())
	_, err := c.ListAt(t.Context(), 2, query{}, "", 0)
	assert.NoError(t, err)
}

// resume reads a watch from a revision on until there are no more events.
func resume(w *world, after storage.Revision) error {
	cur, err := w.set.Cache(things).Watch(query{}, after)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	_, err = cur.Next(ctx)
	return err
}

func TestDroppedHistoryReturnsErrCompacted(t *testing.T) {
	w := newWorld(t, options{MaxEvents: 3})
	c := w.set.Cache(things)
	for i := range 10 {
		w.put(things, "a/x", "", fmt.Sprint(i))
	}
	require.NoError(t, w.store.Compact(t.Context(), 5))
	require.ErrorIs(t, resume(w, 4), storage.ErrCompacted)
	require.NoError(t, resume(w, 5+2))
	_, err := c.ListAt(t.Context(), 4, query{}, "", 0)
	require.ErrorIs(t, err, storage.ErrCompacted)
	p, err := c.ListAt(t.Context(), 5, query{}, "", 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"a/x@5 4"}, show(p.Entries))
	_, err = c.ListAt(t.Context(), 11, query{}, "", 0)
	require.ErrorIs(t, err, storage.ErrFuture)
}

func TestSlowWatcherFailsAndDelaysNoOther(t *testing.T) {
	w := newWorld(t, options{MaxEvents: 10})
	c := w.set.Cache(things)
	_, slow := c.ListAndWatch(query{})
	_, quick := c.ListAndWatch(query{})
	_, elsewhere := c.ListAndWatch(query{Prefix: "b/"})
	_, bookmarked := c.ListAndWatch(query{Prefix: "b/"})
	drainAll(t, elsewhere)
	parked := make(chan []string)
	go func() {
		events, _ := elsewhere.Next(t.Context())
		parked <- showEvents(events)
	}()
	awaitParked(c, 1)
	for i := range 25 {
		w.put(things, "a/x", "", fmt.Sprint(i))
		require.Len(t, drainAll(t, quick), 1)
		// A watcher that wakes up without finding an event has not fallen behind.
		require.Empty(t, drainAll(t, bookmarked))
		require.Equal(t, storage.Revision(i+1), bookmarked.Revision())
	}
	_, err := slow.Next(t.Context())
	require.ErrorIs(t, err, storage.ErrCompacted)
	// Nor has a watcher that waits for other events.
	w.put(things, "b/x", "", "last")
	assert.Equal(t, []string{"ADDED b/x@26 last"}, <-parked)
}

// awaitParked waits until n groups of cursors are parked.
func awaitParked(c *Cache[*thing], n int) {
	for parked := -1; parked != n; {
		c.mu.Lock()
		parked = len(c.parked)
		c.mu.Unlock()
	}
}

func TestLostWatchesLeaveNoGap(t *testing.T) {
	inner := memstore.New(memstore.Options{})
	w := openWorld(t, faultinject.Wrap(inner, func(c faultinject.Call) faultinject.Fault {
		switch {
		case c.Op == faultinject.OpEvent && c.N%13 == 0:
			return faultinject.Fault{Err: errors.New("connection lost")}
		case c.Op == faultinject.OpEvent && c.N%7 == 0:
			return faultinject.Fault{End: true}
		case c.Op == faultinject.OpWatch && c.N%4 == 0:
			return faultinject.Fault{Err: errors.New("no connection")}
		}
		return faultinject.Fault{}
	}), options{})
	m := w.churn(rand.New(rand.NewPCG(9, 10)), 40)
	w.checkEveryResume(m, 0)
	w.checkEveryList(m, 0)
}

func TestLostHistoryShowsAsDifferences(t *testing.T) {
	inner := memstore.New(memstore.Options{})
	commit := func(key, value string) storage.Revision {
		write := storage.Write{Key: things + key, Expect: storage.AnyRevision}
		if value != "" {
			write.Value = object("", value)
		}
		rev, err := inner.Commit(t.Context(), write)
		require.NoError(t, err)
		return rev
	}
	for _, key := range []string{"a/changes", "a/goes", "a/goes2", "a/stays"} {
		commit(key, "1")
	}
	lost := make(chan struct{})
	store := faultinject.Wrap(inner, func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpWatch && c.N == 1 {
			return faultinject.Fault{Wait: lost, Err: storage.ErrCompacted}
		}
		return faultinject.Fault{}
	})
	w := openWorld(t, store, options{})
	c := w.set.Cache(things)
	_, cur := c.ListAndWatch(query{})
	commit("a/goes", "")         // 5
	commit("a/new", "1")         // 6
	commit("a/changes", "2")     // 7
	commit("a/goes2", "")        // 8
	commit("a/changes", "3")     // 9
	commit("a/brief", "1")       // 10
	rev := commit("a/brief", "") // 11
	close(lost)
	require.NoError(t, w.set.Wait(t.Context(), rev))

	assert.Equal(t, []string{
		"ADDED a/new@6 1", "MODIFIED a/changes@9 3", "DELETED a/goes@10 1", "DELETED a/goes2@11 1",
	}, drainAll(t, cur))
	assert.Equal(t, rev, cur.Revision())
	assert.Equal(t, []string{"a/changes@9 3", "a/new@6 1", "a/stays@4 1"}, show(c.List(query{}, "", 0).Entries))
	// A list at a revision of the lost time must not be derived from the differences.
	p, err := c.ListAt(t.Context(), 7, query{}, "", 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"a/changes@7 2", "a/goes2@3 1", "a/new@6 1", "a/stays@4 1"}, show(p.Entries))
	// The watch goes on.
	w.put(things, "a/more", "", "1")
	assert.Equal(t, []string{"ADDED a/more@12 1"}, drainAll(t, cur))
}

func TestBackendClosedEndsEverything(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	_, cur := c.ListAndWatch(query{})
	require.NoError(t, w.store.Close())
	_, err := cur.Next(t.Context())
	require.ErrorIs(t, err, storage.ErrClosed)
	require.ErrorIs(t, w.set.Wait(t.Context(), 1), storage.ErrClosed)
	f := w.set.Feed()
	require.ErrorIs(t, f.Wait(t.Context()), storage.ErrClosed)
}

// TestHistoryOfOneType checks that the history of a type ends although other types have later commits.
func TestHistoryOfOneType(t *testing.T) {
	s, err := badgerstore.Open(badgerstore.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	first := openWorld(t, s, options{})
	start := first.put(things, "a/x", "", "1")
	for i := range 300 {
		first.put(others, "a/x", "", fmt.Sprint(i))
	}
	first.put(things, "a/x", "", "2")
	first.put(others, "a/x", "", "last")
	h, err := openSet(t.Context(), s, options{})
	require.NoError(t, err)
	defer h.Close()
	cur, err := h.Cache(things).Watch(query{}, start)
	require.NoError(t, err)
	events, err := cur.Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"MODIFIED a/x@302 2"}, showEvents(events))
	assert.Equal(t, h.Revision(), cur.Revision(), "the cursor has read all events")
}
