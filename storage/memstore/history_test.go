package memstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func put(t testing.TB, s *memstore.Store, key, value string) storage.Revision {
	t.Helper()
	revision, err := s.Commit(context.Background(), storage.Write{Key: key, Value: []byte(value), Expect: storage.AnyRevision})
	require.NoError(t, err)
	return revision
}

// oldest returns the oldest readable revision.
func oldest(t testing.TB, s *memstore.Store) storage.Revision {
	t.Helper()
	newest, err := s.Revision(context.Background())
	require.NoError(t, err)
	for at := storage.Revision(1); at < newest; at++ {
		if _, _, err := s.Scan(context.Background(), "", "", at); err == nil {
			return at
		}
	}
	return newest
}

func TestRetainKeepsRecordsForDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{Retain: 10 * time.Minute})
		defer s.Close()
		for minute := 1; minute <= 30; minute++ {
			revision := put(t, s, "a", fmt.Sprint(minute))
			at := oldest(t, s)
			require.LessOrEqual(t, at, max(1, revision-10), "replaced less than ten minutes ago")
			require.GreaterOrEqual(t, at, revision-14, "kept for too long")
			rec, err := s.Get(context.Background(), "a", at)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(at), string(rec.Value))
			time.Sleep(time.Minute)
		}
	})
}

func TestRetainDefaultIsFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		defer s.Close()
		first := put(t, s, "a", "1")
		time.Sleep(5 * time.Minute)
		put(t, s, "a", "2")
		_, err := s.Get(context.Background(), "a", first)
		require.NoError(t, err)
		time.Sleep(6 * time.Minute)
		put(t, s, "a", "3")
		time.Sleep(6 * time.Minute)
		put(t, s, "a", "4")
		_, err = s.Get(context.Background(), "a", first)
		require.ErrorIs(t, err, storage.ErrCompacted)
	})
}

func TestMaxEventsLimitsHistory(t *testing.T) {
	s := memstore.New(memstore.Options{MaxEvents: 80})
	defer s.Close()
	for range 1000 {
		put(t, s, "a", "x")
	}
	require.Greater(t, oldest(t, s), storage.Revision(900))
	require.Less(t, oldest(t, s), storage.Revision(940))
	for _, err := range s.Watch(context.Background(), "", 1) {
		require.ErrorIs(t, err, storage.ErrCompacted)
	}
}

func TestMaxBytesLimitsHistory(t *testing.T) {
	s := memstore.New(memstore.Options{MaxBytes: 4 << 20})
	defer s.Close()
	value := string(make([]byte, 64<<10))
	for range 400 {
		put(t, s, "a", value)
	}
	kept := 400 - oldest(t, s)
	require.Greater(t, kept, storage.Revision(32))
	require.LessOrEqual(t, kept, storage.Revision(64))
}

// An idle watch does not fall behind, no matter how many commits there are under other prefixes.
func TestIdleWatchDoesNotFallBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{MaxEvents: 16, Retain: time.Second})
		defer s.Close()
		first := put(t, s, "quiet", "1")
		var got []string
		var wg sync.WaitGroup
		wg.Go(func() {
			for commit, err := range s.Watch(context.Background(), "quiet", first) {
				if err != nil {
					got = append(got, err.Error())
					return
				}
				if got = append(got, string(commit[0].Value)); len(got) == 2 {
					return
				}
			}
		})
		for range 2 {
			synctest.Wait()
			for range 1000 {
				put(t, s, "busy", "x")
				time.Sleep(time.Millisecond)
			}
			put(t, s, "quiet", "2")
		}
		wg.Wait()
		require.Equal(t, []string{"2", "2"}, got)
	})
}

func TestSlowWatchGetsErrCompacted(t *testing.T) {
	s := memstore.New(memstore.Options{MaxEvents: 16})
	defer s.Close()
	put(t, s, "a", "x")
	n := storage.Revision(0)
	for commit, err := range s.Watch(context.Background(), "", 0) {
		if err != nil {
			require.ErrorIs(t, err, storage.ErrCompacted)
			break
		}
		n++
		require.Equal(t, n, commit[0].Revision)
		for range 100 {
			put(t, s, "a", "x")
		}
	}
	require.Positive(t, n)
}

// Forks share the history of the original up to the fork and are independent afterwards, also if the
// original is written concurrently.
func TestForkIsIndependent(t *testing.T) {
	ctx := context.Background()
	s := memstore.New(memstore.Options{})
	defer s.Close()
	for i := range 500 {
		put(t, s, fmt.Sprint(i%50), fmt.Sprint(i))
	}
	_, err := s.Stamp(ctx, "names", "one")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			put(t, s, fmt.Sprint(i%50), "original")
		}
	})
	for f := range 8 {
		wg.Go(func() {
			fork := s.Fork()
			defer fork.Close()
			base, err := fork.Revision(context.Background())
			require.NoError(t, err)
			own := fmt.Sprint("fork", f)
			for i := range 200 {
				require.Equal(t, base+1+storage.Revision(i), put(t, fork, fmt.Sprint(i%50), own))
			}
			last := base
			for commit, err := range fork.Watch(context.Background(), "", 0) {
				require.NoError(t, err)
				e := commit[0]
				if e.Revision > base {
					require.Equal(t, own, string(e.Value))
				} else if e.Revision <= 500 {
					require.Equal(t, fmt.Sprint(e.Revision-1), string(e.Value))
				}
				if last = e.Revision; last == base+200 {
					break
				}
			}
			rec, err := fork.Get(context.Background(), "7", 500)
			require.NoError(t, err)
			require.Equal(t, "457", string(rec.Value))
			have, err := fork.Stamp(context.Background(), "names", own)
			require.NoError(t, err)
			require.Equal(t, "one", have)
		})
	}
	for range 20 {
		_, records, err := s.Scan(context.Background(), "", "", 0)
		require.NoError(t, err)
		for rec := range records {
			require.NotContains(t, string(rec.Value), "fork")
		}
	}
	cancel()
	wg.Wait()
}

func TestForkOfClosedStoreIsClosed(t *testing.T) {
	s := memstore.New(memstore.Options{})
	require.NoError(t, s.Close())
	_, err := s.Fork().Revision(context.Background())
	require.ErrorIs(t, err, storage.ErrClosed)
}
