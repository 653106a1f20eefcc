package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWatchAtFutureRevision(t *testing.T) {
	w := newWorld(t, options{})
	cur, err := w.set.Cache(things).Watch(query{}, 2)
	require.NoError(t, err)
	w.put(things, "a/x", "", "1")
	w.put(things, "a/x", "", "2")
	w.put(things, "a/x", "", "3")
	assert.Equal(t, []string{"MODIFIED a/x@3 3"}, drainAll(t, cur))
}

// TestOnlyMatchingCursorsAreWoken checks which groups of cursors stay parked.
func TestOnlyMatchingCursorsAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		c := w.set.Cache(things)
		c.SetTopics(func(topics []Topic, e *thing) ([]Topic, bool) {
			return append(topics, Topic{"value", e.value}), e.value != "unknown"
		})
		queries := map[string]query{
			"all": {}, "a/": {Prefix: "a/"}, "b/": {Prefix: "b/"}, "b/c/": {Prefix: "b/c/"}, "b/c": {Prefix: "b/c"}, "a/x": {Key: "a/x"},
			"value 1": {Prefix: "a/", Topic: Topic{"value", "1"}}, "value 2": {Topic: Topic{"value", "2"}},
		}
		woken := func(key, value string) (names []string) {
			groups := make(map[string]*eventlog.Group)
			for name, q := range queries {
				c.mu.Lock()
				groups[name] = c.parked.Park(q.topic())
				c.mu.Unlock()
			}
			w.put(things, key, "", value)
			synctest.Wait() // until the follower waits for the next commit
			for name, g := range groups {
				select {
				case <-g.Woken():
					names = append(names, name)
				default:
				}
			}
			c.EndWatches()
			slices.Sort(names)
			return names
		}
		assert.Equal(t, []string{"a/", "a/x", "all", "value 1"}, woken("a/x", "1"))
		assert.Equal(t, []string{"a/", "a/x", "all", "value 1", "value 2"}, woken("a/x", "2"))
		assert.Equal(t, []string{"all", "b/", "b/c"}, woken("b/x", "3"))
		assert.Equal(t, []string{"all", "b/", "b/c", "b/c/"}, woken("b/c/x", "3"))
		assert.Equal(t, []string{"all"}, woken("c", "7"))
		assert.Equal(t, []string{"all", "value 1", "value 2"}, woken("c", "unknown"))
		assert.Equal(t, []string{"all", "value 1", "value 2"}, woken("c", "7"), "the old topics are not known")
		assert.Equal(t, []string{"all", "value 1"}, woken("c", "1"))
	})
}

func TestThousandWatchersSeeEveryChange(t *testing.T) {
	const watchers, writers, each = 1000, 4, 25
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	var wg sync.WaitGroup
	var failed atomic.Pointer[string]
	for i := range watchers {
		q := query{}
		if i%2 == 0 {
			q.Prefix = fmt.Sprintf("ns%d/", i/2%writers)
		}
		_, cur := c.ListAndWatch(q)
		wg.Go(func() {
			if fault := followAll(t.Context(), cur, q, writers*each); fault != "" {
				failed.Store(&fault)
			}
		})
	}
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				key := things + fmt.Sprintf("ns%d/o", n)
				_, err := w.store.Commit(t.Context(), storage.Write{Key: key, Value: object("", fmt.Sprint(i)), Expect: storage.AnyRevision})
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	if f := failed.Load(); f != nil {
		t.Fatal(*f)
	}
}

// followAll reads all changes up to the last revision, or the quarter of them that is in a namespace, and returns an
// error if they are wrong.
func followAll(ctx context.Context, cur *Cursor[*thing], q query, total int) string {
	want := total
	if q.Prefix != "" {
		want /= 4
	}
	last, seen := storage.Revision(0), map[string]int{}
	for n := 0; n < want; {
		events, err := cur.Next(ctx)
		if err != nil {
			return err.Error()
		}
		for _, ev := range events {
			if ev.Revision <= last {
				return fmt.Sprintf("revision %d after %d", ev.Revision, last)
			}
			if q.Prefix == "" && ev.Revision != last+1 {
				return fmt.Sprintf("gap from %d to %d", last, ev.Revision)
			}
			if v := ev.New.value; v != fmt.Sprint(seen[ev.key()]) {
				return fmt.Sprintf("%s is %s after %d changes", ev.key(), v, seen[ev.key()])
			}
			seen[ev.key()]++
			last = ev.Revision
			n++
		}
	}
	return ""
}

// TestListThenWatchMissesNothing starts watches during writes: the list and the changes after it must result in the
// final state.
func TestListThenWatchMissesNothing(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	const writes = 400
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range writes {
			key := fmt.Sprintf("a/o%d", i%7)
			write := storage.Write{Key: things + key, Value: object("", fmt.Sprint(i)), Expect: storage.AnyRevision}
			if i%5 == 4 && i < writes-7 {
				write.Value = nil
			}
			_, err := w.store.Commit(t.Context(), write)
			if !errors.Is(err, storage.ErrNotFound) {
				assert.NoError(t, err)
			}
		}
		_, err := w.store.Commit(t.Context(), storage.Write{Key: things + "z/end", Value: object("", "end"), Expect: storage.AnyRevision})
		assert.NoError(t, err)
	})
	for range 4 {
		wg.Go(func() {
			for done := false; !done; {
				entries, cur := c.ListAndWatch(query{})
				p := c.List(query{}, "", 2)
				from, err := c.Watch(query{}, p.Revision)
				assert.NoError(t, err)
				whole, err := c.ListAt(t.Context(), p.Revision, query{}, "", 0)
				assert.NoError(t, err)
				done = len(entries) > 0 && entries[len(entries)-1].Key == "z/end"
				assert.Equal(t, replay(t, entries, cur), replay(t, whole.Entries, from))
			}
		})
	}
	wg.Wait()
}

// replay applies changes to a state until it reads the end.
func replay(t *testing.T, entries []*thing, cur *Cursor[*thing]) map[string]string {
	state := make(map[string]string)
	for _, e := range entries {
		state[e.Key] = showOne(e)
	}
	for state["z/end"] == "" {
		events, err := cur.Next(t.Context())
		if !assert.NoError(t, err) {
			return nil
		}
		for _, ev := range events {
			if _, there := state[ev.key()]; there == (ev.Old == nil) {
				t.Errorf("event %v of %s, which is in the state: %v", ev, ev.key(), there)
			}
			if delete(state, ev.key()); ev.New != nil {
				state[ev.key()] = showOne(ev.New)
			}
		}
	}
	return state
}

func TestEndWatchesEndsCursors(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	w.put(things, "a/x", "", "1")
	_, cur := c.ListAndWatch(query{})
	ended := make(chan error)
	go func() {
		_, err := cur.Next(t.Context())
		ended <- err
	}()
	awaitParked(c, 1)
	w.set.Cache(things).EndWatches()
	require.ErrorIs(t, <-ended, ErrEnded)
	_, again := c.ListAndWatch(query{})
	w.delete(things, "a/x")
	assert.Equal(t, []string{"DELETED a/x@2 1"}, drainAll(t, again))
}

// TestEndWatchesDeliversEarlierChanges checks that a cursor that is behind when EndWatches is called gets all earlier
// changes and no later ones, also if EndWatches is called again.
func TestEndWatchesDeliversEarlierChanges(t *testing.T) {
	w := newWorld(t, options{})
	c := w.set.Cache(things)
	const many = 3*64 + 5
	_, all := c.ListAndWatch(query{})
	_, one := c.ListAndWatch(query{Key: "a/x7"})
	for i := range many {
		w.put(things, fmt.Sprint("a/x", i), "", "1")
	}
	resumed, err := c.Watch(query{}, many/2)
	require.NoError(t, err)
	w.set.Cache(things).EndWatches()
	_, next := c.ListAndWatch(query{})
	for i := range many {
		w.delete(things, fmt.Sprint("a/x", i))
	}
	w.set.Cache(things).EndWatches()
	w.put(things, "a/y", "", "1")
	for _, cur := range []struct {
		*Cursor[*thing]
		events int
	}{{all, many}, {one, 1}, {resumed, many - many/2}, {next, many}} {
		got := 0
		for {
			events, err := cur.Next(t.Context())
			if err != nil {
				require.ErrorIs(t, err, ErrEnded)
				break
			}
			got += len(events)
		}
		assert.Equal(t, cur.events, got)
	}
}

func TestCacheSetInSynctestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{Retain: -1})
		h, err := openSet(t.Context(), store, options{Retain: time.Minute, MaxEvents: 5})
		require.NoError(t, err)
		w := &world{t, store, h}
		c := h.Cache(things)

		// A watcher without events returns its position at its time limit.
		_, cur := c.ListAndWatch(query{Prefix: "b/"})
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			for range 20 { // more than the log holds
				w.put(things, "a/x", "", "1")
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = cur.Next(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(start))
		assert.Equal(t, storage.Revision(20), cur.Revision())
		assert.Empty(t, drainAll(t, cur))

		// A wait for a revision that does not come ends with its context and leaves nothing.
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		require.ErrorIs(t, h.Wait(ctx, 1000), context.DeadlineExceeded)
		cancel()
		synctest.Wait()
		assert.Empty(t, h.waits.gates)
		assert.Empty(t, h.waits.by)
		assert.Empty(t, c.parked)

		// The log, and the states kept for paging, end with their time.
		w.put(things, "a/y", "", "2")
		p := c.List(query{}, "", 1)
		require.NotEmpty(t, p.Next)
		time.Sleep(50 * time.Second)
		w.put(things, "a/z", "", "3")
		synctest.Wait()
		assert.Len(t, c.pins, 1)
		time.Sleep(11 * time.Second)
		w.put(others, "a/x", "", "sweeps")
		time.Sleep(10 * time.Second)
		w.put(others, "a/x", "", "sweeps again")
		synctest.Wait()
		assert.Equal(t, 1, c.log.Events())
		assert.Equal(t, storage.Revision(21), c.log.Floor())
		assert.Len(t, c.pins, 1)
		_, err = c.ListAt(t.Context(), p.Revision, query{}, p.Next, 1)
		require.NoError(t, err, "the state was replaced 21 seconds ago")
		time.Sleep(39 * time.Second)
		_, err = c.ListAt(t.Context(), p.Revision, query{}, p.Next, 1)
		require.NoError(t, err, "the state was replaced a minute ago")
		time.Sleep(2 * time.Second)
		_, err = c.ListAt(t.Context(), p.Revision, query{}, p.Next, 1)
		require.ErrorIs(t, err, storage.ErrCompacted)
		_, err = c.Watch(query{}, p.Revision)
		require.ErrorIs(t, err, storage.ErrCompacted)
		_, err = c.Watch(query{}, 22)
		require.NoError(t, err, "nothing has changed since")
		w.put(others, "a/x", "", "sweeps once more")
		synctest.Wait()
		assert.Empty(t, c.pins)

		require.NoError(t, h.Close())
		require.NoError(t, store.Close())
	})
}
