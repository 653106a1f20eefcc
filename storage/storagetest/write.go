package storagetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func writeRules() []rule {
	return []rule{
		{"CommitCompares", commitChecks, "a write succeeds only if the key has the expected revision; a conflict returns the current record and changes nothing", commitCompares},
		{"CommitDeletes", commitMissing, "deleting a missing key fails with ErrNotFound; a deleted key can be created again", commitDeletes},
		{"RevisionsIncrease", commitApplies, "every commit has a larger revision than any returned before; a failed commit has no revision", revisionsIncrease},
		{"ConcurrentCreate", commitChecks, "of many concurrent creates of one key exactly one succeeds", concurrentCreate},
		{"ConcurrentIncrement", commitChecks, "compare-and-swap loses no update", concurrentIncrement},
		{"ConcurrentCommits", commitApplies, "concurrent commits have unique revisions, and a read at each of them returns its write", concurrentCommits},
		{"ConcurrentHistory", commitApplies, "after concurrent commits, reads at each revision match the commits up to it, and a watch continues from it", concurrentHistory},
		{"CommitSequence", sequenceOf, "a sequence commits each value with its own revision and event, and nothing if the first comparison fails", commitSequence},
		{"StampKeepsFirst", stampKeeps, "a stamp keeps its first value and changes neither keys nor revisions", stampKeepsFirst},
	}
}

// write makes n commits from several goroutines and returns their revisions.
func write(s *store, workers, n int, make func(i int) storage.Write) []storage.Revision {
	s.t.Helper()
	revisions := slices.Repeat([]storage.Revision{0}, n)
	errs := slices.Repeat([]error{nil}, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				revisions[i], errs[w] = s.Commit(s.ctx, make(i))
			}
		})
	}
	wg.Wait()
	require.NoError(s.t, errors.Join(errs...))
	return revisions
}

// fails requires that the error of a commit is want, which may be wrapped or nil.
func (s *store) fails(want, err error) {
	s.t.Helper()
	var wanted, got *storage.ConflictError
	if !errors.As(want, &wanted) {
		require.ErrorIs(s.t, err, want)
		return
	}
	require.ErrorAs(s.t, err, &got)
	require.Equal(s.t, wanted, got)
}

func conflict(s *store, w storage.Write, current storage.Record) {
	s.t.Helper()
	before := s.newest()
	_, err := s.Commit(s.ctx, w)
	s.fails(&storage.ConflictError{Key: w.Key, Expect: w.Expect, Current: current}, err)
	require.Equal(s.t, before, s.newest())
	require.Equal(s.t, current, s.get(w.Key, 0))
}

func commitCompares(s *store) {
	value := []byte("x")
	conflict(s, storage.Write{Key: "a", Value: value, Expect: 1 << 40}, storage.Record{})
	first, err := s.Commit(s.ctx, storage.Write{Key: "a", Value: value})
	require.NoError(s.t, err)
	conflict(s, storage.Write{Key: "a", Value: value}, storage.Record{Key: "a", Value: value, Revision: first})
	conflict(s, storage.Write{Key: "a"}, storage.Record{Key: "a", Value: value, Revision: first})
	second, err := s.Commit(s.ctx, storage.Write{Key: "a", Value: []byte("y"), Expect: first})
	require.NoError(s.t, err)
	current := storage.Record{Key: "a", Value: []byte("y"), Revision: second}
	conflict(s, storage.Write{Key: "a", Value: value, Expect: first}, current)
	conflict(s, storage.Write{Key: "a", Expect: first}, current)
	conflict(s, storage.Write{Key: "a", Expect: second + 1}, current)
	third, err := s.Commit(s.ctx, storage.Write{Key: "a", Expect: second})
	require.NoError(s.t, err)
	require.Greater(s.t, third, second)
	conflict(s, storage.Write{Key: "a", Expect: second}, storage.Record{})
	conflict(s, storage.Write{Key: "a", Value: value, Expect: third}, storage.Record{})
}

func commitSequence(s *store) {
	var values [][]byte
	for i := range storage.SequenceLength {
		value := make([]byte, storage.SequenceBytes/storage.SequenceLength)
		value[0] = byte(i)
		values = append(values, value)
	}
	prev := storage.Record{}
	base := s.newest()
	var want []storage.Event
	for range 3 {
		_, err := storage.CommitSequence(s.ctx, s.raw, storage.Write{Key: "a", Value: values[0], Expect: prev.Revision + 1}, values[1:]...)
		var fault *storage.ConflictError
		require.ErrorAs(s.t, err, &fault)
		require.Equal(s.t, prev, fault.Current)
		var others sync.WaitGroup // commits of other keys may come between
		for i := range 4 {
			others.Go(func() {
				write(s, 1, 4, func(n int) storage.Write {
					return storage.Write{Key: fmt.Sprint("b", i, n), Expect: storage.AnyRevision, Value: values[0]}
				})
			})
		}
		revisions, err := storage.CommitSequence(s.ctx, s.raw, storage.Write{Key: "a", Value: values[0], Expect: prev.Revision}, values[1:]...)
		require.NoError(s.t, err)
		others.Wait()
		require.Len(s.t, revisions, len(values))
		for i, revision := range revisions {
			require.Greater(s.t, revision, prev.Revision)
			rec := storage.Record{Key: "a", Value: values[i], Revision: revision}
			require.Equal(s.t, rec, s.get("a", revision))
			want = append(want, storage.Event{Record: rec, Prev: prev})
			prev = rec
		}
		require.Equal(s.t, prev, s.get("a", 0))
	}
	require.Equal(s.t, want, s.follow("a", base, len(want)))
}

func commitDeletes(s *store) {
	for _, expect := range []storage.Revision{0, storage.AnyRevision} {
		_, err := s.Commit(s.ctx, storage.Write{Key: "a", Expect: expect})
		require.ErrorIs(s.t, err, storage.ErrNotFound)
	}
	s.put("a", "1")
	s.del("a")
	_, err := s.Commit(s.ctx, storage.Write{Key: "a", Expect: storage.AnyRevision})
	require.ErrorIs(s.t, err, storage.ErrNotFound)
	again, err := s.Commit(s.ctx, storage.Write{Key: "a", Value: []byte("2")})
	require.NoError(s.t, err)
	require.Equal(s.t, storage.Record{Key: "a", Value: []byte("2"), Revision: again}, s.get("a", 0))
}

func revisionsIncrease(s *store) {
	last := s.newest()
	for i := range 50 {
		revision := s.put(fmt.Sprint(i%7), "x")
		require.Greater(s.t, revision, last)
		require.Equal(s.t, revision, s.newest())
		_, err := s.Commit(s.ctx, storage.Write{Key: fmt.Sprint(i % 7), Value: []byte("y")})
		require.Error(s.t, err)
		require.Equal(s.t, revision, s.newest())
		last = revision
	}
}

func concurrentCreate(s *store) {
	const workers = 16
	for round := range 10 {
		key := fmt.Sprint("key", round)
		var won [workers]storage.Revision
		var errs [workers]error
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				won[i], errs[i] = s.Commit(s.ctx, storage.Write{Key: key, Value: []byte(fmt.Sprint(i))})
			})
		}
		wg.Wait()
		winner := slices.Index(errs[:], nil)
		require.GreaterOrEqual(s.t, winner, 0)
		current := storage.Record{Key: key, Value: []byte(fmt.Sprint(winner)), Revision: won[winner]}
		for i, err := range errs {
			if i != winner {
				s.fails(&storage.ConflictError{Key: key, Current: current}, err)
			}
		}
		require.Equal(s.t, current, s.get(key, 0))
	}
}

func concurrentIncrement(s *store) {
	const workers, each = 8, 25
	s.put("n", "0")
	errs := slices.Repeat([]error{nil}, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				if errs[w] = increment(s.ctx, s.Backend, "n"); errs[w] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(s.t, errors.Join(errs...))
	require.Equal(s.t, fmt.Sprint(workers*each), string(s.get("n", 0).Value))
}

// increment increments the number in key. It retries on conflicts.
func increment(ctx context.Context, b storage.Backend, key string) error {
	for {
		rec, err := b.Get(ctx, key, 0)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(rec.Value))
		if err != nil {
			return err
		}
		runtime.Gosched() // lets other commits run in between
		_, err = b.Commit(ctx, storage.Write{Key: key, Value: []byte(strconv.Itoa(n + 1)), Expect: rec.Revision})
		var lost *storage.ConflictError
		if !errors.As(err, &lost) {
			return err
		}
	}
}

func concurrentCommits(s *store) {
	base := s.newest()
	const n = 400
	make := func(i int) storage.Write {
		return storage.Write{Key: fmt.Sprint("k", i%5), Value: []byte(fmt.Sprint(i)), Expect: storage.AnyRevision}
	}
	revisions := write(s, 16, n, make)
	for i, revision := range revisions {
		w := make(i)
		require.Equal(s.t, storage.Record{Key: w.Key, Value: w.Value, Revision: revision}, s.get(w.Key, revision))
	}
	slices.Sort(revisions)
	require.Len(s.t, slices.Compact(revisions), n)
	require.Greater(s.t, revisions[0], base)
	require.Equal(s.t, revisions[n-1], s.newest())
	for i, e := range s.follow("", base, n) {
		require.Equal(s.t, revisions[i], e.Revision)
	}
}

func concurrentHistory(s *store) {
	const clients, each = 24, 3
	h := newHistory(s.newest())
	guard := s.put("guard", "")
	h.add("guard", []byte{}, guard)
	type commit struct {
		ws []storage.Write
		at storage.Revision
	}
	made, errs := make([]commit, clients*each), make([]error, clients)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			var last storage.Revision
			a := fmt.Sprintf("k/%02d", c)
			b := a + "/b"
			for i, ws := range [each][]storage.Write{
				{{Key: a, Value: []byte("created")}, {Key: "guard", Expect: guard, Guard: true}},
				{{Key: a, Value: []byte("changed")}, {Key: b, Value: []byte("beside")}},
				{{Key: a, Value: [][]byte{nil, []byte("again"), {}}[c%3]}},
			} {
				ws[0].Expect = last
				at, err := s.Commit(s.ctx, ws...)
				made[c*each+i], errs[c], last = commit{ws, at}, errors.Join(errs[c], err), at
			}
		})
	}
	all.Wait()
	require.NoError(s.t, errors.Join(errs...))
	slices.SortFunc(made, func(a, b commit) int { return cmp.Compare(a.at, b.at) })
	for _, c := range made {
		require.Greater(s.t, c.at, h.newest())
		for _, w := range c.ws {
			if !w.Guard {
				h.add(w.Key, w.Value, c.at)
			}
		}
	}
	require.Equal(s.t, h.newest(), s.newest())
	h.verify(s, h.base, []string{"k/00", "k/01", "k/02", "k/05/b"}, []string{"", "k/1"})
}

func stampKeepsFirst(s *store) {
	stamper, ok := s.raw.(storage.Stamper)
	if !ok {
		return
	}
	s.put("a", "x")
	before := s.newest()
	for _, c := range []struct{ name, value, want string }{
		{"names", "one", "one"}, {"names", "two", "one"}, {"other", "", ""}, {"other", "x", ""}, {"names", "one", "one"},
	} {
		have, err := stamper.Stamp(s.ctx, c.name, c.value)
		require.NoError(s.t, err)
		require.Equal(s.t, c.want, have)
	}
	require.Equal(s.t, before, s.newest())
	require.Equal(s.t, []string{"a"}, s.keys("", "", 0))
	s.put("b", "y")
	events := s.follow("", before, 1)
	require.Equal(s.t, "b", events[0].Key)
}
