package storagetest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func compactRules() []rule {
	return []rule{
		{"CompactForgets", compactOlder, "after a compaction, reads and watches before the revision fail with ErrCompacted, and later ones are exact", compactForgets},
		{"CompactArguments", compactTakes, "compacting again or at an older revision returns nil, in the future ErrFuture", compactArguments},
		{"CompactKeepsNewest", compactOlder, "a compaction drops no existing key, no matter how old its record is", compactKeepsNewest},
		{"CompactDuringScan", scanShows, "a scan whose revision is compacted during the scan is complete or ends with ErrCompacted", compactDuringScan},
		{"CompactDuringWrites", watchYields, "a compaction during writes loses no commit of a watch that keeps up", compactDuringWrites},
	}
}

func (h *history) fill(s *store, n int) {
	s.t.Helper()
	for i := range n {
		key := fmt.Sprintf("k/%d", (i*i+i/3)%9)
		if i%5 == 4 && s.get(key, 0).Revision != 0 {
			h.add(key, nil, s.del(key))
			continue
		}
		value := fmt.Sprint(len(h.events))
		h.add(key, []byte(value), s.put(key, value))
	}
}

func compactForgets(s *store) {
	h := newHistory(s.newest())
	keys := []string{"k/0", "k/1", "k/2", "k/3", "k/4", "k/5", "k/6", "k/7", "k/8"}
	for range 4 {
		h.fill(s, 25)
		at := h.events[len(h.events)-10].Revision
		require.NoError(s.t, s.Compact(s.ctx, at))
		for _, e := range h.events[:len(h.events)-10] {
			_, err := s.Get(s.ctx, e.Key, e.Revision)
			require.ErrorIs(s.t, err, storage.ErrCompacted)
			_, _, err = s.Scan(s.ctx, "k/", "", e.Revision)
			require.ErrorIs(s.t, err, storage.ErrCompacted)
			require.NoError(s.t, compactedWatch(s, "k/", e.Revision))
			require.NoError(s.t, compactedWatch(s, "none", e.Revision))
		}
		h.verify(s, at, keys, []string{"", "k/", "k/3"})
	}
	require.NoError(s.t, s.Compact(s.ctx, h.newest()))
	h.verify(s, h.newest(), keys, []string{"", "k/"})
}

func compactArguments(s *store) {
	h := newHistory(s.newest())
	h.fill(s, 10)
	require.ErrorIs(s.t, s.Compact(s.ctx, h.newest()+1), storage.ErrFuture)
	h.verify(s, h.base, nil, []string{""})
	middle := h.events[5].Revision
	for _, at := range []storage.Revision{middle, middle, h.events[2].Revision} {
		require.NoError(s.t, s.Compact(s.ctx, at))
		h.verify(s, middle, nil, []string{""})
	}
	require.NoError(s.t, compactedWatch(s, "", h.events[4].Revision))
}

func compactKeepsNewest(s *store) {
	h := newHistory(s.newest())
	h.add("old", []byte("x"), s.put("old", "x"))
	h.fill(s, 30)
	require.NoError(s.t, s.Compact(s.ctx, h.newest()))
	require.Equal(s.t, h.events[0].Record, s.get("old", 0))
	require.Equal(s.t, h.events[0].Record, s.get("old", h.newest()))
	revision, err := s.Commit(s.ctx, storage.Write{Key: "old", Value: []byte("y"), Expect: h.events[0].Revision})
	require.NoError(s.t, err)
	h.add("old", []byte("y"), revision)
	require.Equal(s.t, h.after(revision-1, ""), s.follow("", revision-1, 1))
}

func compactDuringScan(s *store) {
	h := newHistory(s.newest())
	const n = 1500
	write(s, 8, n, func(i int) storage.Write {
		return storage.Write{Key: fmt.Sprintf("k/%04d", i), Value: []byte("old")}
	})
	at := s.newest()
	_, records, err := s.Scan(s.ctx, "k/", "", at)
	require.NoError(s.t, err)
	got := 0
	for rec, err := range records {
		if err != nil {
			require.ErrorIs(s.t, err, storage.ErrCompacted)
			require.Positive(s.t, got)
			return
		}
		require.Equal(s.t, fmt.Sprintf("k/%04d", got), rec.Key)
		require.Equal(s.t, "old", string(rec.Value))
		if got++; got == 1 {
			s.put("k/1400", "new")
			s.del("k/1401")
			require.NoError(s.t, s.Compact(s.ctx, s.newest()))
		}
	}
	require.Equal(s.t, n, got)
	require.Greater(s.t, s.newest(), h.base)
}

func compactDuringWrites(s *store) {
	base := s.newest()
	const n = 400
	var wg sync.WaitGroup
	defer wg.Wait()
	for w := range 4 {
		wg.Go(func() {
			for i := range n / 4 {
				w := storage.Write{Key: fmt.Sprint("k", w, i%3), Value: []byte("x"), Expect: storage.AnyRevision}
				if i%3 == 2 && i > 3 {
					w.Key, w.Value = fmt.Sprint(w.Key[:2], 0), nil
				}
				if _, err := s.Commit(s.ctx, w); err != nil && i%3 != 2 {
					s.t.Error(err)
				}
			}
		})
	}
	state := map[string]storage.Record{}
	last, seen := base, 0
	for seen < n*2/3 {
		events := s.follow("k", last, 1)
		e := events[0]
		require.Greater(s.t, e.Revision, last)
		require.Equal(s.t, state[e.Key], e.Prev)
		if state[e.Key] = e.Record; e.Deleted() {
			delete(state, e.Key)
		}
		last = e.Revision
		if seen++; seen%20 == 0 {
			require.NoError(s.t, s.Compact(s.ctx, last))
		}
	}
}
