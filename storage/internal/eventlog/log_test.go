package eventlog

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(revision storage.Revision) storage.Event {
	return storage.Event{Record: storage.Record{Key: fmt.Sprint("k", revision%3), Revision: revision, Value: []byte("x")}}
}

// Revisions need not follow each other: what a reader gets depends on their
// order alone.
func TestBetween(t *testing.T) {
	l := New(10, Limits{Events: 40})
	var all []storage.Revision
	for i := range storage.Revision(100) {
		all = append(all, 11+i*3)
		l.Append(time.Now(), event(11+i*3))
	}
	floor := l.Floor()
	require.Greater(t, floor, storage.Revision(11))
	for after := floor; after < 320; after++ {
		for _, last := range []storage.Revision{after, after + 1, after + 30, 1000} {
			var want, got []storage.Revision
			for _, revision := range all {
				if revision > after && revision <= last {
					want = append(want, revision)
				}
			}
			runs, ok := l.Between(after, last)
			require.True(t, ok)
			for _, run := range runs {
				for _, e := range run {
					got = append(got, e.Revision)
				}
			}
			require.Equal(t, want, got, "after %d to %d", after, last)
		}
	}
	_, ok := l.Between(floor-1, 1000)
	require.False(t, ok)
}

func TestForget(t *testing.T) {
	l := New(0, Limits{})
	for i := range storage.Revision(1000) {
		l.Append(time.Now(), event(i+1))
	}
	l.Forget(700)
	require.Equal(t, storage.Revision(700), l.Floor())
	l.Forget(300)
	require.Equal(t, storage.Revision(700), l.Floor())
	c := Cursor{After: 699}
	_, err := l.Next(t.Context(), &c, nil)
	require.ErrorIs(t, err, storage.ErrCompacted)
	c = Cursor{After: 700}
	events, err := l.Next(t.Context(), &c, nil)
	require.NoError(t, err)
	require.Equal(t, event(701), events[0])
	l.Forget(5000)
	require.Equal(t, storage.Revision(1000), l.Floor())
	require.Zero(t, l.bytes)
	require.Zero(t, l.events)
}

// A batch wakes a reader for its first event that matters to it.
func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(0, Limits{})
		type answer struct {
			events []storage.Event
			err    error
			after  storage.Revision
		}
		next := func(prefix string, after storage.Revision, ctx context.Context) <-chan answer {
			got := make(chan answer, 1)
			go func() {
				c := Cursor{Prefix: prefix, After: after}
				events, err := l.Next(ctx, &c, nil)
				got <- answer{events, err, c.After}
			}()
			return got
		}
		ctx, cancel := context.WithCancel(t.Context())
		k1, k2, future := next("k1", 0, ctx), next("k2", 0, ctx), next("", 3, ctx)
		never := next("none", 0, ctx)
		closed := next("none", 0, t.Context())
		synctest.Wait()
		require.Len(t, l.waiters, 5)
		l.Append(time.Now(), event(1), event(2), event(3))
		require.Equal(t, answer{[]storage.Event{event(1)}, nil, 3}, <-k1)
		require.Equal(t, answer{[]storage.Event{event(2)}, nil, 3}, <-k2)
		synctest.Wait()
		require.Empty(t, future)
		l.Append(time.Now(), event(4))
		require.Equal(t, answer{[]storage.Event{event(4)}, nil, 4}, <-future)
		cancel()
		require.ErrorIs(t, (<-never).err, context.Canceled)
		require.Len(t, l.waiters, 1)
		l.Close()
		require.ErrorIs(t, (<-closed).err, storage.ErrClosed)
	})
}

func TestAt(t *testing.T) {
	l := New(10, Limits{Events: 40})
	for i := range storage.Revision(100) {
		l.Append(time.Now(), event(11+i*3))
	}
	for revision := range storage.Revision(320) {
		e, ok := l.At(event(revision).Key, revision)
		require.Equal(t, revision > l.Floor() && revision <= 308 && (revision-11)%3 == 0, ok, revision)
		if ok {
			require.Equal(t, event(revision), e)
		}
	}
}

// A deletion keeps what it removed.
func TestBytesCountWhatWasReplaced(t *testing.T) {
	l := New(0, Limits{Bytes: 100 << 10})
	for i := range storage.Revision(1000) {
		e := event(i + 1)
		e.Value, e.Prev.Value = nil, make([]byte, 10<<10)
		l.Append(time.Now(), e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	require.LessOrEqual(t, l.events, 2*chunkBytes/(10<<10))
}

// Chunks and the forgetting of them do not divide a commit, and no reader stands
// within one.
func TestCommitsAreNotDivided(t *testing.T) {
	const each = 5
	l := New(0, Limits{Events: 40})
	for i := range storage.Revision(100) {
		var events []storage.Event
		for j := range each {
			e := event(i + 1)
			e.Key = fmt.Sprint("k", j)
			events = append(events, e)
		}
		l.Append(time.Now(), events...)
		floor := l.Floor()
		for after := floor; after <= i; after++ {
			c := Cursor{After: after}
			events, err := l.Next(t.Context(), &c, nil)
			require.NoError(t, err)
			require.Equal(t, after+1, events[0].Revision)
			require.Zero(t, len(events)%each)
			require.Equal(t, c.After, events[len(events)-1].Revision)
			last, ok := l.At(fmt.Sprint("k", each-1), after+1)
			require.True(t, ok)
			require.Equal(t, after+1, last.Revision)
			_, ok = l.At("none", after+1)
			require.False(t, ok)
		}
	}
	require.Greater(t, l.Floor(), storage.Revision(50))
}
