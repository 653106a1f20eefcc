package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func watchRules() []rule {
	return []rule{
		{"WatchResumes", watchYields, "a watch from any revision yields every later commit under its prefix once, in order, with the replaced records", watchResumes},
		{"WatchLive", watchYields, "a watch continues from old to new commits without a gap", watchLive},
		{"WatchManyAtOnce", watchYields, "watches with different prefixes and start revisions do not affect each other", watchMany},
		{"WatchPrefix", watchYields, "a watch yields no event outside its prefix", watchPrefix},
		{"WatchStops", watchYields, "the consumer of a watch may stop at any commit", watchStops},
		{"WatchCancelled", watchYields, "when its context ends, a watch ends without an error, whether it is waiting or not", watchCancelled},
		{"WatchSlowConsumer", watchBehind, "a consumer that does not read delays neither commits nor other watches, and loses no retained commit", watchSlow},
		{"History", historyYields, "the history between two revisions has the commits that a watch yields between them, and ends", historyEnds},
		{"WatchThenRead", commitShows, "a commit that a watch has yielded can be read", watchThenRead},
	}
}

func watchResumes(s *store) {
	h := newHistory(s.newest())
	for i := range 60 {
		key := fmt.Sprintf("%c/%d", 'a'+i%2, i*3%7)
		if i%4 == 3 && s.get(key, 0).Revision != 0 {
			h.add(key, nil, s.del(key))
			continue
		}
		value := fmt.Sprint(i)
		h.add(key, []byte(value), s.put(key, value))
	}
	h.verify(s, h.base, nil, []string{"", "a/", "b/", "a/3", "none"})
}

func watchLive(s *store) {
	const n = 600
	base := s.newest()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for i := range n {
			w := storage.Write{Key: fmt.Sprint("k", i%3), Value: []byte(fmt.Sprint(i)), Expect: storage.AnyRevision}
			if _, err := s.Commit(s.ctx, w); err != nil {
				s.t.Error(err)
				return
			}
		}
	})
	next, last := 0, base
	prev := map[string]storage.Record{}
	for next < n {
		take := min(1+next%37, n-next)
		for _, e := range s.follow("k", last, take) {
			require.Greater(s.t, e.Revision, last)
			require.Equal(s.t, fmt.Sprint(next), string(e.Value))
			require.Equal(s.t, prev[e.Key], e.Prev)
			prev[e.Key] = e.Record
			last = e.Revision
			next++
		}
	}
}

func watchMany(s *store) {
	const n = 200
	h := newHistory(s.newest())
	type result struct {
		prefix string
		after  storage.Revision
		events []storage.Event
		err    error
	}
	results := make([]result, 24)
	for i := range n / 2 {
		h.add(fmt.Sprint(i%4), []byte("x"), s.put(fmt.Sprint(i%4), "x"))
	}
	var wg sync.WaitGroup
	for i := range results {
		r := &results[i]
		r.prefix = fmt.Sprint(i % 4)
		r.after = h.base
		if i%3 != 0 {
			r.after = h.events[i*3].Revision
		}
		want := len(h.after(r.after, r.prefix)) + n/8
		wg.Go(func() { r.events, r.err = collect(s.ctx, s.Backend, r.prefix, r.after, want) })
	}
	for i := range n / 2 {
		h.add(fmt.Sprint(i%4), []byte("y"), s.put(fmt.Sprint(i%4), "y"))
	}
	wg.Wait()
	for _, r := range results {
		require.NoError(s.t, r.err)
		require.Equal(s.t, h.after(r.after, r.prefix)[:len(r.events)], r.events)
	}
}

func watchPrefix(s *store) {
	base := s.newest()
	s.put("a", "1")
	s.put("a/", "2")
	s.put("a/b", "3")
	s.put("a0", "4")
	s.put("b", "5")
	s.del("a/b")
	s.put("a/z", "end")
	var seen []string
	for _, e := range s.follow("a/", base, 4) {
		seen = append(seen, e.Key+"="+string(e.Value))
	}
	require.Equal(s.t, []string{"a/=2", "a/b=3", "a/b=", "a/z=end"}, seen)
}

func watchStops(s *store) {
	base := s.newest()
	for i := range 5 {
		s.put("a", fmt.Sprint(i))
	}
	for n := 1; n <= 5; n++ {
		require.Len(s.t, s.follow("", base, n), n)
	}
}

func watchCancelled(s *store) {
	base := s.newest()
	s.put("a", "1")
	ctx, cancel := context.WithCancel(s.ctx)
	events := 0
	for _, err := range s.Watch(ctx, "", base) {
		require.NoError(s.t, err)
		events++
		s.put("a", "2")
		cancel()
	}
	require.Equal(s.t, 1, events)
	for range s.Watch(ctx, "", base) {
		s.t.Fatal("a watch whose context had ended yielded something")
	}
	ctx, cancel = context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() {
		for _, err := range s.Watch(ctx, "", s.newest()) {
			ended <- fmt.Errorf("yielded something: %w", err)
			return
		}
		ended <- nil
	}()
	cancel()
	require.NoError(s.t, <-ended)
}

func watchSlow(s *store) {
	base := s.newest()
	const n = 500
	s.put("a", "0")
	stuck, release := make(chan struct{}), make(chan struct{})
	arrived := sync.OnceFunc(func() { close(stuck) })
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	var slow []storage.Event
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer arrived()
		for commit, err := range s.Watch(s.ctx, "", base) {
			if err != nil {
				failed = err
				return
			}
			if slow = append(slow, commit...); len(slow) == 1 {
				arrived()
				<-release
			}
			if len(slow) == n {
				return
			}
		}
	})
	<-stuck
	for i := 1; i < n; i++ {
		s.put("a", fmt.Sprint(i))
	}
	quick := s.follow("", base, n)
	free()
	wg.Wait()
	require.NoError(s.t, failed)
	require.Equal(s.t, quick, slow)
}

func historyEnds(s *store) {
	historian, ok := s.raw.(storage.HistoryReader)
	if !ok {
		return
	}
	h := newHistory(s.newest())
	h.fill(s, 60)
	for i := 0; i < 60; i += 7 {
		for j := i; j < 60; j += 9 {
			for _, prefix := range []string{"", "k/3", "none"} {
				after, last := h.events[i].Revision, h.events[j].Revision
				var want, got []storage.Event
				for _, e := range h.after(after, prefix) {
					if e.Revision <= last {
						want = append(want, e)
					}
				}
				for commit, err := range historian.History(s.ctx, prefix, after, last) {
					require.NoError(s.t, err)
					got = append(got, commit...)
				}
				require.Equal(s.t, want, got, "%q from %d to %d", prefix, after, last)
			}
		}
	}
	require.NoError(s.t, s.Compact(s.ctx, h.events[30].Revision))
	n := 0
	for _, err := range historian.History(s.ctx, "", h.events[10].Revision, h.newest()) {
		require.ErrorIs(s.t, err, storage.ErrCompacted)
		n++
	}
	require.Equal(s.t, 1, n)
}

func watchThenRead(s *store) {
	base := s.newest()
	const n = 200
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for i := range n {
			w := storage.Write{Key: fmt.Sprint(i), Value: []byte("x")}
			if _, err := s.Commit(s.ctx, w); err != nil {
				s.t.Error(err)
				return
			}
		}
	})
	seen := 0
	for commit, err := range s.Watch(s.ctx, "", base) {
		require.NoError(s.t, err)
		e := commit[0]
		require.GreaterOrEqual(s.t, s.newest(), e.Revision)
		require.Equal(s.t, e.Record, s.get(e.Key, 0))
		require.Equal(s.t, e.Record, s.get(e.Key, e.Revision))
		if seen++; seen == n {
			break
		}
	}
	require.Equal(s.t, n, seen)
}

// compactedWatch returns an error unless a watch yields only ErrCompacted.
func compactedWatch(s *store, prefix string, after storage.Revision) error {
	var got error
	n := 0
	for commit, err := range s.Watch(s.ctx, prefix, after) {
		if n++; err == nil {
			return s.t.note(breaks(watchForgets, "Watch(%q, %d) delivered revision %d", prefix, after, commit[0].Revision))
		}
		got = err
	}
	if n != 1 {
		return s.t.note(breaks(watchForgets, "Watch(%q, %d) yielded %d times", prefix, after, n))
	}
	if !errors.Is(got, storage.ErrCompacted) {
		return s.t.note(breaks(watchForgets, "Watch(%q, %d) yielded %v", prefix, after, got))
	}
	return nil
}
