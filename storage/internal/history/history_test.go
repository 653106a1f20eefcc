package history

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(revision storage.Revision) storage.Event {
	return storage.Event{Record: storage.Record{Key: fmt.Sprint("k", revision%3), Revision: revision, Value: []byte("x")}}
}

func TestForgetDropsCommitsUpToRevision(t *testing.T) {
	l := New(0, eventlog.Limits{})
	for i := range storage.Revision(1000) {
		l.Append(time.Now(), event(i+1))
	}
	l.Forget(700)
	require.Equal(t, storage.Revision(700), l.Floor())
	c := Cursor{After: 699}
	_, err := l.Next(t.Context(), &c)
	require.ErrorIs(t, err, storage.ErrCompacted)
	c = Cursor{After: 700}
	commits, err := l.Next(t.Context(), &c)
	require.NoError(t, err)
	require.Equal(t, []storage.Event{event(701)}, commits[0].Events)
}

// first returns the first event of a watch.
func first(ctx context.Context, l *Log, prefix string, after storage.Revision) (event storage.Event, err error) {
	for events, err := range l.Watch(ctx, prefix, after, nil) {
		if err != nil {
			return event, err
		}
		return events[0], nil
	}
	return event, ctx.Err()
}

// A waiting watch is woken by a commit under its prefix and after its revision.
func TestWatchWaitsForMatchingCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(0, eventlog.Limits{})
		type answer struct {
			event storage.Event
			err   error
		}
		watch := func(prefix string, after storage.Revision, ctx context.Context) <-chan answer {
			got := make(chan answer, 1)
			go func() {
				e, err := first(ctx, l, prefix, after)
				got <- answer{e, err}
			}()
			return got
		}
		ctx, cancel := context.WithCancel(t.Context())
		k1, k2, future := watch("k1", 0, ctx), watch("k2", 0, ctx), watch("", 3, ctx)
		never := watch("none", 0, ctx)
		closed := watch("none", 0, t.Context())
		synctest.Wait()
		require.Len(t, l.waiting, 4)
		l.Append(time.Now(), event(1), event(2), event(3))
		require.Equal(t, answer{event(1), nil}, <-k1)
		require.Equal(t, answer{event(2), nil}, <-k2)
		synctest.Wait()
		require.Empty(t, future)
		l.Append(time.Now(), event(4))
		require.Equal(t, answer{event(4), nil}, <-future)
		cancel()
		require.ErrorIs(t, (<-never).err, context.Canceled)
		require.Len(t, l.waiting, 1)
		l.Close()
		require.ErrorIs(t, (<-closed).err, storage.ErrClosed)
		require.Empty(t, l.waiting)
	})
}

// A parked reader moves past commits under other prefixes, no matter how many there are.
func TestParkedReadersDoNotFallBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(0, eventlog.Limits{Events: 5})
		got := make(chan storage.Event, 1)
		go func() {
			e, err := first(t.Context(), l, "quiet", 0)
			require.NoError(t, err)
			got <- e
		}()
		synctest.Wait()
		for i := range storage.Revision(100) {
			l.Append(time.Now(), event(i+1))
		}
		require.Greater(t, l.Floor(), storage.Revision(90))
		last := event(101)
		last.Key = "quiet"
		l.Append(time.Now(), event(100+1), last)
		require.Equal(t, last, <-got)
	})
}

func TestAtReturnsEventOfRevision(t *testing.T) {
	l := New(10, eventlog.Limits{Events: 40})
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

// The event of a deletion keeps the deleted value.
func TestBytesIncludeReplacedValues(t *testing.T) {
	l := New(0, eventlog.Limits{Bytes: 100 << 10})
	for i := range storage.Revision(1000) {
		e := event(i + 1)
		e.Value, e.Prev.Value = nil, make([]byte, 10<<10)
		l.Append(time.Now(), e)
		require.LessOrEqual(t, l.log.Bytes(), int64(100<<10))
	}
	require.Greater(t, l.log.Events(), 7)
}

// A watch yields all events of a commit that are under its prefix as one element.
func TestWatchYieldsEventsOfCommitTogether(t *testing.T) {
	const each = 5
	l := New(0, eventlog.Limits{Events: 40})
	for i := range storage.Revision(100) {
		var events []storage.Event
		for j := range each {
			e := event(i + 1)
			e.Key = fmt.Sprint("k", j/2, "/", j)
			events = append(events, e)
		}
		l.Append(time.Now(), events...)
		for _, prefix := range []string{"", "k", "k0", "k1", "k2", "k1/3"} {
			var want []storage.Event
			for j := range events {
				if e := events[j]; len(e.Key) >= len(prefix) && e.Key[:len(prefix)] == prefix {
					want = append(want, e)
				}
			}
			for got, err := range l.Watch(t.Context(), prefix, i, nil) {
				require.NoError(t, err)
				require.Equal(t, want, got, prefix)
				break
			}
		}
	}
	require.Greater(t, l.Floor(), storage.Revision(50))
}
