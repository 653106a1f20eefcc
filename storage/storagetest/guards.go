package storagetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func guardRules() []rule {
	return []rule{
		{"CommitGuards", guardWrites, "guards are compared, and their keys are not written", commitGuards},
		{"CommitGuardsRefuses", commitRefuses, "a commit of guards only, a guard with a write of its key, and a guard with a value or AnyRevision fail with ErrInvalidCommit", commitGuardsRefuses},
		{"CommitGuardsConcurrent", commitChecks, "if two commits guard each other's keys, exactly one succeeds", commitGuardsConcurrent},
	}
}

func commitGuards(s *store) {
	h := newHistory(s.newest())
	h.together(s, storage.Write{Key: "b", Value: []byte("1")}, storage.Write{Key: "d", Value: []byte("1")})
	before := h.now["d"].Revision
	h.together(s, storage.Write{Key: "d", Value: []byte("2"), Expect: before})
	for _, c := range []struct {
		guard storage.Write
		holds bool
	}{
		{storage.Write{Key: "d", Expect: h.now["d"].Revision}, true},
		{storage.Write{Key: "c"}, true}, // the key does not exist
		{storage.Write{Key: "d", Expect: before}, false},
		{storage.Write{Key: "d"}, false},
		{storage.Write{Key: "c", Expect: before}, false},
	} {
		c.guard.Guard = true
		for i, w := range []storage.Write{
			{Key: "a", Value: fmt.Append(nil, c), Expect: h.now["a"].Revision},
			{Key: "b", Value: fmt.Append(nil, c), Expect: storage.AnyRevision},
			{Key: "f", Value: []byte("x")},
			{Key: "f", Expect: storage.AnyRevision},
		} {
			if !c.holds && i == 3 {
				break // the key does not exist
			}
			revision, err := s.Commit(s.ctx, w, c.guard)
			if c.holds {
				require.NoError(s.t, err)
				h.add(w.Key, w.Value, revision)
				if has, _ := s.raw.Get(s.ctx, c.guard.Key, 0); has.Revision != c.guard.Expect {
					s.broke(guardWrites, "the guard %q has revision %d after the commit, expected %d", c.guard.Key, has.Revision, c.guard.Expect)
				}
			} else {
				s.fails(&storage.ConflictError{Key: c.guard.Key, Expect: c.guard.Expect, Current: h.now[c.guard.Key]}, err)
			}
			h.verify(s, h.base, []string{"a", "b", "c", "d", "f"}, []string{"", "d"})
		}
	}
	h.together(s, storage.Write{Key: "b", Expect: storage.AnyRevision})
	_, err := s.Commit(s.ctx, storage.Write{Key: "b", Expect: storage.AnyRevision}, storage.Write{Key: "d", Expect: h.now["d"].Revision, Guard: true})
	s.fails(storage.ErrNotFound, err)
	h.verify(s, h.base, []string{"b", "d"}, []string{""})
}

func commitGuardsRefuses(s *store) {
	first, err := s.Commit(s.ctx, storage.Write{Key: "a", Value: []byte("1")})
	require.NoError(s.t, err)
	guard, write := storage.Write{Key: "a", Expect: first, Guard: true}, storage.Write{Key: "b", Value: []byte("1")}
	for _, ws := range [][]storage.Write{
		{guard},
		{guard, {Key: "b", Guard: true}},
		{guard, write, {Key: "a", Value: []byte("2"), Expect: first}},
		{write, {Key: "a", Expect: first, Value: []byte("2"), Guard: true}},
		{write, {Key: "a", Expect: storage.AnyRevision, Guard: true}},
	} {
		_, err := s.Commit(s.ctx, ws...)
		require.ErrorIs(s.t, err, storage.ErrInvalidCommit)
	}
	_, err = storage.CommitSequence(s.ctx, s.Backend, guard, []byte("2"))
	require.ErrorIs(s.t, err, storage.ErrInvalidCommit)
	require.Equal(s.t, first, s.newest())
	require.Equal(s.t, []string{"a"}, s.keys("", "", 0))
}

func commitGuardsConcurrent(s *store) {
	for round := range 20 {
		keys := [2]string{fmt.Sprint("x/", round), fmt.Sprint("y/", round)}
		var errs [2]error
		var wg sync.WaitGroup
		for i, key := range keys {
			wg.Go(func() {
				_, errs[i] = s.Commit(s.ctx, storage.Write{Key: key, Value: []byte("x")}, storage.Write{Key: keys[1-i], Guard: true})
			})
		}
		wg.Wait()
		won, lost := 0, &storage.ConflictError{}
		for i, err := range errs {
			if err == nil {
				won++
				continue
			}
			if !errors.As(err, &lost) {
				require.NoError(s.t, err)
			}
			require.Equal(s.t, keys[1-i], lost.Key)
		}
		if won != 1 {
			s.broke(commitChecks, "%d of two commits that exclude each other were made", won)
		}
	}
}
