package storagetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func readRules() []rule {
	return []rule{
		{"GetReturnsWhatWasCommitted", getReturns, "a record has the value and the revision of its commit, also an empty value", getCommitted},
		{"GetAtRevision", getReturns, "a read at a revision returns the record of that revision", getAtRevision},
		{"GetErrors", getFails, "a missing key fails with ErrNotFound, a revision after the newest one with ErrFuture", getErrors},
		{"ScanOrder", scanReturns, "a scan yields the keys with its prefix in byte order, for arbitrary bytes", scanOrder},
		{"ScanStart", scanStarts, "start skips exactly the keys before it", scanStart},
		{"ScanAtRevision", scanReturns, "a scan at a revision returns the records of that revision", scanAtRevision},
		{"ScanIsOneRevision", scanShows, "later commits do not change the result of a scan", scanIsolated},
		{"ScanStops", scanReturns, "the consumer of a scan may stop at any record", scanStops},
		{"ScanMany", scanReturns, "a scan yields all records of a large store", scanMany},
		{"LargeValues", commitShows, "values of some MiB can be stored", largeValues},
	}
}

func getCommitted(s *store) {
	for _, value := range []string{"one", "", "\x00\xff"} {
		revision := s.put("a", value)
		want := storage.Record{Key: "a", Value: []byte(value), Revision: revision}
		require.Equal(s.t, want, s.get("a", 0))
		require.Equal(s.t, want, s.get("a", revision))
		_, records := s.scan("a", "", 0)
		require.Equal(s.t, []storage.Record{want}, records)
	}
}

func getAtRevision(s *store) {
	h := newHistory(s.newest())
	h.add("other", []byte("x"), s.put("other", "x"))
	h.add("a", []byte("1"), s.put("a", "1"))
	h.add("a", []byte("2"), s.put("a", "2"))
	h.add("a", nil, s.del("a"))
	h.add("other", []byte("y"), s.put("other", "y"))
	h.add("a", []byte("3"), s.put("a", "3"))
	h.verify(s, h.base, []string{"a", "other", "never"}, []string{"", "a"})
}

func getErrors(s *store) {
	_, err := s.Get(s.ctx, "a", 0)
	require.ErrorIs(s.t, err, storage.ErrNotFound)
	before := s.put("b", "x")
	s.put("a", "x")
	_, err = s.Get(s.ctx, "a", before)
	require.ErrorIs(s.t, err, storage.ErrNotFound)
	s.del("a")
	_, err = s.Get(s.ctx, "a", 0)
	require.ErrorIs(s.t, err, storage.ErrNotFound)
	_, err = s.Get(s.ctx, "a", s.newest()+1)
	require.ErrorIs(s.t, err, storage.ErrFuture)
	_, _, err = s.Scan(s.ctx, "", "", s.newest()+1)
	require.ErrorIs(s.t, err, storage.ErrFuture)
}

func scanOrder(s *store) {
	sorted := []string{"\x00", "/", "/a", "/a/b", "/a/b\x00", "/a/c", "/a\xff", "/a\xff\xff", "/b", "a", "\xfe", "\xff", "\xff\xff"}
	for i := range sorted {
		key := sorted[(i*5+3)%len(sorted)]
		s.put(key, key)
	}
	require.Equal(s.t, sorted, s.keys("", "", 0))
	require.Equal(s.t, sorted[2:8], s.keys("/a", "", 0))
	require.Equal(s.t, sorted[3:6], s.keys("/a/", "", 0))
	require.Equal(s.t, sorted[6:8], s.keys("/a\xff", "", 0))
	require.Equal(s.t, sorted[11:], s.keys("\xff", "", 0))
	require.Empty(s.t, s.keys("/c", "", 0))
}

func scanStart(s *store) {
	for _, key := range []string{"p/a", "p/b", "p/c", "q/a"} {
		s.put(key, "x")
	}
	for _, c := range []struct {
		start string
		want  []string
	}{
		{"", []string{"p/a", "p/b", "p/c"}},
		{"a", []string{"p/a", "p/b", "p/c"}},
		{"p/b", []string{"p/b", "p/c"}},
		{"p/b\x00", []string{"p/c"}},
		{"p/d", []string{}},
		{"q/a", []string{}},
		{"z", []string{}},
	} {
		require.Equal(s.t, c.want, s.keys("p/", c.start, 0), "start %q", c.start)
	}
}

func scanAtRevision(s *store) {
	h := newHistory(s.newest())
	for i := range 40 {
		key := fmt.Sprintf("k/%d", i*7%10)
		if i%3 == 2 && s.get(key, 0).Revision != 0 {
			h.add(key, nil, s.del(key))
			continue
		}
		value := fmt.Sprint(i)
		h.add(key, []byte(value), s.put(key, value))
	}
	for _, e := range h.events {
		for _, start := range []string{"", "k/3", "k/99"} {
			_, records := s.scan("k/", start, e.Revision)
			require.Equal(s.t, h.at(e.Revision, "k/", start), records, "at %d from %q", e.Revision, start)
		}
	}
}

func scanIsolated(s *store) {
	h := newHistory(s.newest())
	for i := range 50 {
		key := fmt.Sprintf("k/%02d", i)
		h.add(key, []byte("old"), s.put(key, "old"))
	}
	first := h.newest()
	for _, at := range []storage.Revision{0, first} {
		revision, records, err := s.Scan(s.ctx, "k/", "", at)
		require.NoError(s.t, err)
		require.Equal(s.t, first, revision)
		want := h.at(revision, "k/", "")
		var got []storage.Record
		for rec, err := range records {
			require.NoError(s.t, err)
			got = append(got, rec)
			i := len(got)
			h.add("k/49", []byte("new"), s.put("k/49", "new"))
			key := fmt.Sprintf("k/%02d-%d", i, at)
			h.add(key, []byte("new"), s.put(key, "new"))
			if key := fmt.Sprintf("k/%02d", i); i < 20 && at == 0 {
				h.add(key, nil, s.del(key))
			}
		}
		require.Equal(s.t, want, got)
	}
}

func scanStops(s *store) {
	for i := range 10 {
		s.put(fmt.Sprint(i), "x")
	}
	for n := 1; n <= 10; n++ {
		_, records, err := s.Scan(s.ctx, "", "", 0)
		require.NoError(s.t, err)
		got := 0
		for _, err := range records {
			require.NoError(s.t, err)
			if got++; got == n {
				break
			}
		}
		require.Equal(s.t, n, got)
	}
}

func scanMany(s *store) {
	const n = 3000
	write(s, 16, n, func(i int) storage.Write {
		return storage.Write{Key: fmt.Sprintf("k/%05d", i), Value: []byte(fmt.Sprint(i))}
	})
	_, records := s.scan("k/", "", 0)
	require.Len(s.t, records, n)
	for i, rec := range records {
		require.Equal(s.t, fmt.Sprintf("k/%05d", i), rec.Key)
		require.Equal(s.t, fmt.Sprint(i), string(rec.Value))
	}
}

func largeValues(s *store) {
	h := newHistory(s.newest())
	for i, size := range []int{1 << 19, 1<<20 + 1, 3 << 20, 1} {
		value := make([]byte, size)
		for j := range value {
			value[j] = byte(i + j*j>>3)
		}
		h.add("large", value, s.put("large", string(value)))
	}
	h.verify(s, h.base, []string{"large"}, []string{""})
}
