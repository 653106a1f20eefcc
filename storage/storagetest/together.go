package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func togetherRules() []rule {
	return []rule{
		{"CommitTogether", commitApplies, "the writes of a commit have one revision and become visible together, and a watch yields their events as one element, sorted by key", commitTogether},
		{"CommitTogetherCompares", commitChecks, "if one comparison of a commit fails, or a deleted key does not exist, nothing is written", commitTogetherCompares},
		{"CommitTogetherRefuses", commitRefuses, "no writes, or two writes of one key, fail with ErrInvalidCommit", commitTogetherRefuses},
		{"CommitTogetherBounds", commitTakes, "a store accepts CommitLength writes of CommitBytes and one large value", commitTogetherBounds},
		{"CommitTogetherConcurrent", commitShows, "no method shows a part of a commit", commitTogetherConcurrent},
		{"ReserveTogether", commitApplies, "if many commits create an object together with the same reservation, exactly one succeeds", reserveTogether},
	}
}

// together makes a commit of several writes and adds its events to the history.
func (h *history) together(s *store, ws ...storage.Write) {
	s.t.Helper()
	revision, err := s.Commit(s.ctx, ws...)
	require.NoError(s.t, err)
	require.Greater(s.t, revision, h.newest())
	ws, err = storage.NormalizeCommit(ws)
	require.NoError(s.t, err)
	for _, w := range ws {
		h.add(w.Key, w.Value, revision)
		if has, _ := s.raw.Get(s.ctx, w.Key, 0); has.Revision != h.now[w.Key].Revision {
			s.broke(commitApplies, "Commit returned revision %d, and %q has %d", revision, w.Key, has.Revision)
		}
	}
}

// fillTogether makes n commits of one to five writes (creates, updates and deletions) in arbitrary key order.
func (h *history) fillTogether(s *store, n int) {
	s.t.Helper()
	for i := range n {
		var ws []storage.Write
		for j := range 1 + (i*i+i/2)%5 {
			key := fmt.Sprintf("k/%d", (7*i+4*j)%9)
			w := storage.Write{Key: key, Expect: h.now[key].Revision}
			if w.Expect == 0 || (i+j)%3 > 0 {
				w.Value = fmt.Append(nil, i, ".", j)
			}
			ws = append(ws, w)
		}
		h.together(s, ws...)
	}
}

func commitTogether(s *store) {
	h := newHistory(s.newest())
	h.fillTogether(s, 40)
	h.verify(s, h.base, []string{"k/0", "k/1", "k/5", "k/8"}, []string{"", "k/", "k/3", "none"})
	for range 10 {
		h.fillTogether(s, 40)
	}
	at := h.events[len(h.events)/2].Revision
	for _, prefix := range []string{"", "k/3"} {
		for _, after := range []storage.Revision{h.base, at} {
			want := h.after(after, prefix)
			require.Equal(s.t, want, s.follow(prefix, after, len(want)))
		}
	}
	require.NoError(s.t, s.Compact(s.ctx, at))
	h.verify(s, h.events[len(h.events)-60].Revision, nil, []string{"", "k/4"})
}

func commitTogetherCompares(s *store) {
	h := newHistory(s.newest())
	value := []byte("x")
	h.together(s, storage.Write{Key: "b", Value: value}, storage.Write{Key: "d", Value: value})
	for _, c := range []struct {
		bad  storage.Write
		want error
	}{
		{storage.Write{Key: "d", Value: value}, &storage.ConflictError{Key: "d", Current: h.now["d"]}},
		{storage.Write{Key: "d", Expect: h.base}, &storage.ConflictError{Key: "d", Expect: h.base, Current: h.now["d"]}},
		{storage.Write{Key: "e", Value: value, Expect: h.newest()}, &storage.ConflictError{Key: "e", Expect: h.newest()}},
		{storage.Write{Key: "e", Expect: storage.AnyRevision}, storage.ErrNotFound},
		{storage.Write{Key: "e"}, storage.ErrNotFound},
	} {
		good := []storage.Write{{Key: "a", Value: value}, {Key: "b", Expect: storage.AnyRevision}, {Key: "f", Value: value}}
		for i := range len(good) + 1 {
			ws := append(append(append([]storage.Write{}, good[:i]...), c.bad), good[i:]...)
			_, err := s.Commit(s.ctx, ws...)
			s.fails(c.want, err)
			h.verify(s, h.base, []string{"a", "b", "d", "e", "f"}, []string{""})
		}
	}
	_, err := s.Commit(s.ctx, storage.Write{Key: "d", Value: value}, storage.Write{Key: "b", Value: value})
	s.fails(&storage.ConflictError{Key: "b", Current: h.now["b"]}, err)
}

func commitTogetherRefuses(s *store) {
	before := s.newest()
	a, b := storage.Write{Key: "a", Value: []byte("x")}, storage.Write{Key: "b", Value: []byte("x")}
	for _, ws := range [][]storage.Write{{}, {a, a}, {a, b, a}, {b, {Key: "a", Expect: storage.AnyRevision}, a}} {
		_, err := s.Commit(s.ctx, ws...)
		require.ErrorIs(s.t, err, storage.ErrInvalidCommit)
	}
	require.Equal(s.t, before, s.newest())
	require.Empty(s.t, s.keys("", "", 0))
}

func commitTogetherBounds(s *store) {
	h := newHistory(s.newest())
	for round, longest := range []int{1 << 20, 50_000, 100} {
		var ws []storage.Write
		for i := range storage.CommitLength {
			w := storage.Write{Key: fmt.Sprintf("k/%04d", (i*37)%storage.CommitLength), Expect: storage.AnyRevision}
			w.Value = []byte(strings.Repeat(fmt.Sprint(round), storage.CommitBytes/storage.CommitLength-len(w.Key)))
			ws = append(ws, w)
		}
		ws[5].Value = make([]byte, longest)
		h.together(s, ws...)
		s.put("single", "x")
		h.add("single", []byte("x"), s.newest())
	}
	h.verify(s, h.base, nil, []string{"", "k/000"})
}

func commitTogetherConcurrent(s *store) {
	const workers, each = 4, 40
	keys := []string{"a", "b", "c"}
	var ws []storage.Write
	for _, key := range keys {
		ws = append(ws, storage.Write{Key: key, Value: []byte("0")})
	}
	base, err := s.Commit(s.ctx, ws...)
	require.NoError(s.t, err)
	errs := make([]error, workers+2)
	var writers, readers sync.WaitGroup
	for w := range workers {
		writers.Go(func() {
			for i := 0; i < each && errs[w] == nil; i++ {
				errs[w] = writeAll(s.ctx, s.Backend, keys, fmt.Append(nil, w, ".", i))
			}
		})
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	readers.Go(func() {
		for ctx.Err() == nil && errs[workers] == nil {
			errs[workers] = readAll(s, len(keys))
		}
	})
	readers.Go(func() {
		last, commits := base, 0
		for commit, err := range s.Watch(s.ctx, "", base) {
			if err == nil {
				err = whole(commit, last)
			}
			if err == nil && (len(commit) != len(keys) || string(commit[0].Value) != string(commit[len(keys)-1].Value)) {
				err = fmt.Errorf("the watch shows %v", commit)
			}
			if errs[workers+1] = err; err != nil {
				return
			}
			if last, commits = commit[0].Revision, commits+1; commits == workers*each {
				return
			}
		}
	})
	writers.Wait()
	cancel()
	readers.Wait()
	require.NoError(s.t, errors.Join(errs...))
}

// writeAll sets all keys to one value in one commit. It retries on conflicts.
func writeAll(ctx context.Context, b storage.Backend, keys []string, value []byte) error {
	for {
		var ws []storage.Write
		for _, key := range keys {
			rec, err := b.Get(ctx, key, 0)
			if err != nil {
				return err
			}
			ws = append(ws, storage.Write{Key: key, Value: value, Expect: rec.Revision})
		}
		_, err := b.Commit(ctx, ws...)
		var lost *storage.ConflictError
		if !errors.As(err, &lost) {
			return err
		}
	}
}

// readAll scans and fails unless all records are from one commit.
func readAll(s *store, n int) error {
	_, records, err := s.Scan(s.ctx, "", "", 0)
	if err != nil {
		return err
	}
	var first storage.Record
	found := 0
	for rec, err := range records {
		if err != nil {
			return err
		}
		if found++; found == 1 {
			first = rec
		}
		if rec.Revision != first.Revision || string(rec.Value) != string(first.Value) {
			return fmt.Errorf("a scan shows %v and %v", first, rec)
		}
	}
	if found != n {
		return fmt.Errorf("a scan shows %d records", found)
	}
	return nil
}

func reserveTogether(s *store) {
	const workers = 8
	for round := range 10 {
		reservation := fmt.Sprint("reserved/", round)
		var won [workers]storage.Revision
		var errs [workers]error
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				object := fmt.Sprint("object/", round, "/", i)
				won[i], errs[i] = s.Commit(s.ctx, storage.Write{Key: object, Value: []byte("x")}, storage.Write{Key: reservation, Value: []byte(object)})
			})
		}
		wg.Wait()
		_, found := s.scan(fmt.Sprint("object/", round, "/"), "", 0)
		require.Len(s.t, found, 1)
		require.Equal(s.t, storage.Record{Key: reservation, Value: []byte(found[0].Key), Revision: found[0].Revision}, s.get(reservation, 0))
		for i, err := range errs {
			if won[i] == found[0].Revision {
				require.NoError(s.t, err)
				continue
			}
			var lost *storage.ConflictError
			require.ErrorAs(s.t, err, &lost)
			require.Equal(s.t, reservation, lost.Key)
		}
	}
}
