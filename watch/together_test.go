package watch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// putTogether sets n objects of each of two types to the same value in a single commit.
func (w *world) putTogether(n int, value string) storage.Revision {
	w.t.Helper()
	var writes []storage.Write
	for i := range n {
		key := fmt.Sprintf("a/o%02d", i)
		writes = append(writes,
			storage.Write{Key: things + key, Value: object("", value), Expect: storage.AnyRevision},
			storage.Write{Key: others + key, Value: object("", value), Expect: storage.AnyRevision})
	}
	rev, err := w.store.Commit(w.t.Context(), writes...)
	require.NoError(w.t, err)
	return rev
}

// TestCursorBetweenCommits checks that the events of a commit are returned together, whether they are in the log or in
// the backend.
func TestCursorBetweenCommits(t *testing.T) {
	const each, commits = 7, 3 * maxBatch / 7
	w := newWorld(t, options{})
	last := storage.Revision(0)
	for i := range commits {
		last = w.putTogether(each, fmt.Sprint(i))
	}
	require.NoError(t, w.set.Wait(t.Context(), last))
	later, err := openSet(t.Context(), w.store, options{})
	require.NoError(t, err)
	defer later.Close()
	for _, h := range []*CacheSet[*thing]{w.set, later} {
		for _, after := range []storage.Revision{0, 1, 9, last - 3} {
			cur, err := h.Cache(things).Watch(query{}, after)
			require.NoError(t, err)
			for at := after; at < last; {
				events, err := cur.Next(t.Context())
				require.NoError(t, err)
				require.Zero(t, len(events)%each)
				for i, ev := range events {
					require.Equal(t, at+1+storage.Revision(i/each), ev.Revision)
				}
				at = events[len(events)-1].Revision
			}
		}
	}
}

// TestListShowsCompleteCommits checks that no list shows a part of a commit, and that the revision of a list is not
// newer than the state of another type.
func TestListShowsCompleteCommits(t *testing.T) {
	w := newWorld(t, options{})
	require.NoError(t, w.set.Wait(t.Context(), w.putTogether(9, "0")))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		for i := range 300 {
			w.putTogether(9, fmt.Sprint(i))
		}
	})
	for ctx.Err() == nil {
		at := w.set.Revision()
		for _, r := range []*Cache[*thing]{w.set.Cache(things), w.set.Cache(others)} {
			page := r.List(query{}, "", 0)
			require.GreaterOrEqual(t, page.Revision, at)
			for _, e := range page.Entries {
				require.Equal(t, page.Entries[0].Revision, e.Revision)
				require.GreaterOrEqual(t, e.Revision, at)
			}
		}
	}
	wg.Wait()
}

// TestReloadAppliesCompleteCommits checks that the differences found by a reload are applied as whole commits.
func TestReloadAppliesCompleteCommits(t *testing.T) {
	w := newWorld(t, options{})
	m := w.churn(rand.New(rand.NewPCG(11, 12)), 50)
	require.NoError(t, w.set.Close())
	last := storage.Revision(0)
	for i := range 5 {
		last = w.putTogether(i+2, fmt.Sprint(i))
	}
	require.NoError(t, w.set.reload(t.Context()))
	require.Equal(t, last, w.set.Revision())
	require.Len(t, m, 51)
	for _, e := range w.set.Cache(things).List(query{Prefix: "a/"}, "", 0).Entries {
		if e.Revision > 50 {
			require.Equal(t, last, e.Revision)
		}
	}
}
