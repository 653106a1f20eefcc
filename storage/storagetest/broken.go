package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
)

// brokenRules are cases in which well-known stores have failed in the past. The cases about crashes are in RunDurable.
func brokenRules() []rule {
	return []rule{
		{"DeleteAfterCompactedRevision", watchYields, "a watch opened at the compacted revision begins with the delete that follows it", deleteAfterCompacted},
		{"DeleteWhileCompacting", watchYields, "a compaction during deletions drops no delete event from a watch that keeps up", deleteWhileCompacting},
		{"RetriedWrite", commitApplies, "a write that is retried after an unknown outcome has one event, not two", retriedWrite},
		{"StarvedStream", watchYields, "a slow watch among others loses no event", starvedStream},
		{"RevisionAheadOfEvents", commitShows, "after a caller has seen revision R, a watch yields all commits up to R before later ones", revisionAhead},
		{"WatchInTheFuture", watchInFuture, "a watch on a future revision delivers nothing up to it", watchFuture},
		{"NoStaleRead", getReturns, "after a commit is acknowledged, no method returns an older state", noStaleRead},
		{"CompactedReadFails", compactOlder, "a read at a compacted revision fails even if the key has not changed since", compactedReadFails},
	}
}

func deleteAfterCompacted(s *store) {
	h := newHistory(s.newest())
	h.add("a", []byte("1"), s.put("a", "1"))
	h.add("b", []byte("1"), s.put("b", "1"))
	h.add("a", nil, s.del("a"))
	h.add("b", nil, s.del("b"))
	for _, e := range h.events {
		require.NoError(s.t, s.Compact(s.ctx, e.Revision))
		h.verify(s, e.Revision, []string{"a", "b"}, []string{"", "a", "b"})
	}
}

func deleteWhileCompacting(s *store) {
	base := s.newest()
	const n = 100
	for i := range n {
		s.put(fmt.Sprint("k", i), "x")
	}
	seen := make(chan storage.Revision, 2*n)
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(seen)
		deleted := 0
		for commit, err := range s.Watch(s.ctx, "k", base) {
			if err != nil {
				failed = err
				return
			}
			e := commit[0]
			seen <- e.Revision
			if e.Deleted() {
				if want := fmt.Sprint("k", deleted); e.Key != want || string(e.Prev.Value) != "x" {
					failed = fmt.Errorf("event %+v instead of the delete of %s", e, want)
					return
				}
				if deleted++; deleted == n {
					return
				}
			}
		}
	})
	for range n {
		<-seen
	}
	for i := range n {
		revision := s.del(fmt.Sprint("k", i))
		for at := range seen {
			if at == revision {
				break
			}
		}
		require.NoError(s.t, s.Compact(s.ctx, revision))
	}
	wg.Wait()
	require.NoError(s.t, failed)
}

func retriedWrite(s *store) {
	base := s.newest()
	lost := errors.New("answer lost")
	b := faultinject.Wrap(s.Backend, func(c faultinject.Call) faultinject.Fault {
		switch {
		case c.Op == faultinject.OpCommit && c.N%3 == 1:
			return faultinject.Fault{Err: lost, Done: true}
		case c.Op == faultinject.OpCommit && c.N%3 == 2:
			return faultinject.Fault{Err: lost}
		}
		return faultinject.Fault{}
	})
	const n = 30
	expect := storage.Revision(0)
	for i := range n {
		w := storage.Write{Key: "a", Value: []byte(fmt.Sprint(i)), Expect: expect}
		for {
			revision, err := b.Commit(s.ctx, w)
			var conflict *storage.ConflictError
			if errors.As(err, &conflict) {
				require.Equal(s.t, w.Value, conflict.Current.Value)
				revision, err = conflict.Current.Revision, nil
			}
			if expect = revision; err == nil {
				break
			}
			require.ErrorIs(s.t, err, lost)
		}
	}
	s.put("b", "end")
	events := s.follow("", base, n+1)
	for i, e := range events[:n] {
		require.Equal(s.t, fmt.Sprint(i), string(e.Value))
	}
	require.Equal(s.t, "b", events[n].Key)
}

func starvedStream(s *store) {
	base := s.newest()
	const n, watches = 400, 12
	failed := make([]error, watches)
	counts := make([]int, watches)
	var wg sync.WaitGroup
	for i := range watches {
		wg.Go(func() {
			last := base
			for commit, err := range s.Watch(s.ctx, "", base) {
				if err == nil {
					err = whole(commit, last)
				}
				if failed[i] = err; err != nil {
					return
				}
				last = commit[0].Revision
				if i%4 == 0 { // a slow consumer reads much between two events
					if _, _, err := s.Scan(s.ctx, "", "", 0); err != nil {
						failed[i] = err
						return
					}
				}
				if counts[i]++; counts[i] == n {
					return
				}
			}
		})
	}
	write(s, 8, n, func(i int) storage.Write {
		return storage.Write{Key: fmt.Sprint("k", i%10), Value: []byte("x"), Expect: storage.AnyRevision}
	})
	wg.Wait()
	require.NoError(s.t, errors.Join(failed...))
	require.Equal(s.t, slices.Repeat([]int{n}, watches), counts)
}

func revisionAhead(s *store) {
	base := s.newest()
	const n = 300
	var wg sync.WaitGroup
	defer wg.Wait()
	for w := range 4 {
		wg.Go(func() {
			for i := range n / 4 {
				if _, err := s.Commit(s.ctx, storage.Write{Key: fmt.Sprint("k", w, i%5), Value: []byte("x"), Expect: storage.AnyRevision}); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	state := map[string]storage.Revision{}
	last, count := base, 0
	for commit, err := range s.Watch(s.ctx, "", base) {
		require.NoError(s.t, err)
		last = commit[0].Revision
		state[commit[0].Key] = last
		if count++; count%10 == 0 {
			known := s.newest()
			require.GreaterOrEqual(s.t, known, last)
			shown, records := s.scan("", "", last)
			require.Equal(s.t, last, shown)
			got := map[string]storage.Revision{}
			for _, rec := range records {
				got[rec.Key] = rec.Revision
			}
			require.Equal(s.t, state, got)
		}
		if count == n {
			break
		}
	}
	require.Equal(s.t, n, count)
}

func watchFuture(s *store) {
	first := s.put("a", "0")
	after := first + 5
	type answer struct {
		events []storage.Event
		err    error
	}
	got := make(chan answer, 1)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() {
		events, err := collect(ctx, s.Backend, "a", after, 3)
		got <- answer{events, err}
	}()
	time.Sleep(20 * time.Millisecond) // the watch is probably waiting now
	h := newHistory(first)
	h.add("a", []byte("0"), first)
	for h.newest() < after+3 {
		value := fmt.Sprint(len(h.events))
		h.add("a", []byte(value), s.put("a", value))
		s.put("b", "x")
	}
	for len(h.after(after, "a")) < 3 {
		value := fmt.Sprint(len(h.events))
		h.add("a", []byte(value), s.put("a", value))
	}
	a := <-got
	require.NoError(s.t, a.err)
	require.Equal(s.t, h.after(after, "a")[:3], a.events)
}

func noStaleRead(s *store) {
	s.put("a", "0")
	for i := 1; i <= 40; i++ {
		value := fmt.Sprint(i)
		revision := s.put("a", value)
		errs := make([]error, 6)
		var wg sync.WaitGroup
		for g := range errs {
			wg.Go(func() { errs[g] = fresh(s, g, revision, value) })
		}
		wg.Wait()
		require.NoError(s.t, errors.Join(errs...))
	}
}

// fresh reads key a with one of several methods and fails if the result is older than the revision.
func fresh(s *store, way int, revision storage.Revision, value string) error {
	var got storage.Record
	var err error
	switch way % 3 {
	case 0:
		got, err = s.Get(s.ctx, "a", 0)
	case 1:
		var at storage.Revision
		if at, err = s.Revision(s.ctx); err == nil {
			got, err = s.Get(s.ctx, "a", at)
		}
	default:
		_, records, failed := s.Scan(s.ctx, "a", "", 0)
		if err = failed; err == nil {
			for rec, failed := range records {
				got, err = rec, failed
			}
		}
	}
	if err == nil && (got.Revision != revision || string(got.Value) != value) {
		err = fmt.Errorf("read %q at %d instead of %q at %d", got.Value, got.Revision, value, revision)
	}
	return err
}

func compactedReadFails(s *store) {
	first := s.put("still", "x")
	second := s.put("a", "1")
	third := s.put("a", "2")
	require.NoError(s.t, s.Compact(s.ctx, third))
	for _, at := range []storage.Revision{first, second} {
		for _, key := range []string{"still", "a", "never"} {
			_, err := s.Get(s.ctx, key, at)
			require.ErrorIs(s.t, err, storage.ErrCompacted)
		}
		_, _, err := s.Scan(s.ctx, "still", "", at)
		require.ErrorIs(s.t, err, storage.ErrCompacted)
	}
	require.Equal(s.t, "x", string(s.get("still", third).Value))
}
