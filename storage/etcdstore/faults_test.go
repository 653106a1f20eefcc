package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// load writes through several stores, each key once, and watches through each of them.
type load struct {
	t      testing.TB
	stores []*etcdstore.Store
	base   storage.Revision

	mu    sync.Mutex
	acked map[string]storage.Revision
	last  storage.Revision // of those
	lost  []error          // of commits that failed
	news  chan struct{}    // closed when something is acknowledged

	stop   chan struct{}
	writes sync.WaitGroup
}

func startLoad(t testing.TB, stores []*etcdstore.Store, writers int) *load {
	base, err := stores[0].Revision(t.Context())
	require.NoError(t, err)
	l := &load{t: t, stores: stores, base: base, acked: map[string]storage.Revision{}, news: make(chan struct{}), stop: make(chan struct{})}
	for w := range writers {
		s := stores[w%len(stores)]
		l.writes.Go(func() { l.write(s, w) })
	}
	return l
}

func (l *load) write(s *etcdstore.Store, w int) {
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		default:
		}
		key := fmt.Sprintf("k/%d/%06d", w, i)
		revision, err := s.Commit(l.t.Context(), storage.Write{Key: key, Value: []byte(key)}, storage.Write{Key: fmt.Sprintf("last/%d", w), Value: []byte(key), Expect: storage.AnyRevision})
		l.mu.Lock()
		if err != nil {
			l.lost = append(l.lost, err)
		} else {
			l.acked[key] = revision
			l.last = max(l.last, revision)
			close(l.news)
			l.news = make(chan struct{})
		}
		l.mu.Unlock()
	}
}

// newest is the newest revision that was acknowledged.
func (l *load) newest() storage.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// progress waits until so many commits more are acknowledged.
func (l *load) progress(n int) {
	l.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	l.mu.Lock()
	want := len(l.acked) + n
	l.mu.Unlock()
	for {
		l.mu.Lock()
		have, news := len(l.acked), l.news
		l.mu.Unlock()
		if have >= want {
			return
		}
		select {
		case <-news:
		case <-deadline.C:
			require.FailNow(l.t, "there is no progress")
		}
	}
}

// seen follows a watch up to a commit of the key "end", and tells what was wrong with it.
func (l *load) seen(s *etcdstore.Store) (seen map[string]storage.Revision, err error) {
	seen = map[string]storage.Revision{}
	last, lasts := l.base, map[string]storage.Record{}
	for commit, err := range s.Watch(l.t.Context(), "", l.base) {
		switch {
		case err != nil:
			return seen, err
		case commit[0].Revision <= last:
			return seen, fmt.Errorf("revision %d after %d", commit[0].Revision, last)
		case commit[0].Key == "end":
			return seen, nil
		case len(commit) != 2 || string(commit[0].Value) != string(commit[1].Value):
			return seen, fmt.Errorf("a commit in part: %v", commit)
		case commit[1].Prev.Revision != lasts[commit[1].Key].Revision:
			return seen, fmt.Errorf("%v replaced %v", commit[1].Prev, lasts[commit[1].Key])
		case seen[commit[0].Key] != 0:
			return seen, fmt.Errorf("%q came twice", commit[0].Key)
		}
		last = commit[0].Revision
		seen[commit[0].Key], lasts[commit[1].Key] = last, commit[1].Record
	}
	return seen, errors.New("the watch ended")
}

// check ends the writers and compares: what was acknowledged is there, and every watch, those
// that run since the beginning and new ones, has yielded the same commits, each once.
func (l *load) check(running []<-chan watched) {
	l.t.Helper()
	close(l.stop)
	l.writes.Wait()
	l.t.Logf("%d commits", len(l.acked))
	require.Empty(l.t, l.lost, "it is found out what became of each commit")
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := l.stores[0].Commit(ctx, storage.Write{Key: "end", Value: []byte{}, Expect: storage.AnyRevision})
		if err == nil {
			break
		}
		require.NoError(l.t, ctx.Err(), "%v", err)
	}
	fresh, err := l.seen(l.stores[0])
	require.NoError(l.t, err)
	for _, w := range running {
		got := <-w
		require.NoError(l.t, got.err)
		require.Equal(l.t, fresh, got.seen)
	}
	_, records, err := l.stores[len(l.stores)-1].Scan(ctx, "k/", "", 0)
	require.NoError(l.t, err)
	there := map[string]storage.Revision{}
	for rec, err := range records {
		require.NoError(l.t, err)
		require.Equal(l.t, rec.Key, string(rec.Value))
		there[rec.Key] = rec.Revision
	}
	require.Equal(l.t, fresh, there)
	for key, revision := range l.acked {
		require.Equal(l.t, revision, there[key], key)
	}
}

type watched struct {
	seen map[string]storage.Revision
	err  error
}

// watch follows a watch of each store.
func (l *load) watch() (running []<-chan watched) {
	for _, s := range l.stores {
		w := make(chan watched, 1)
		go func() {
			seen, err := l.seen(s)
			w <- watched{seen, err}
		}()
		running = append(running, w)
	}
	return running
}

// TestFaults: members die, are cut off from each other and from the stores, and stand still,
// one after the other, while there is load. Two are there at any time, so it goes on.
func TestFaults(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t)
	var stores []*etcdstore.Store
	for range 2 {
		s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/faults", Retain: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		stores = append(stores, s)
	}
	l := startLoad(t, stores, 8)
	running := l.watch()
	const some = 100
	l.progress(some)
	for i, m := range c.Members {
		m.Kill()
		l.progress(some)
		m.Restart()
		l.progress(some)

		c.Isolate(i)
		l.progress(some)
		alone(t, c, i)
		c.Rejoin(i)
		m.Ready()
		l.progress(some)

		c.CutClients(i)
		l.progress(some)
		c.JoinClients(i)
		l.progress(some)

		if testing.Short() {
			break
		}
		m.Pause()
		l.progress(some)
		m.Resume()
		m.Ready()
		l.progress(some)
	}
	l.check(running)
}

// alone checks that a member which is cut off from the others tells nothing: it may be old.
func alone(t testing.TB, c *etcdtest.Cluster, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := etcdstore.Open(ctx, etcdstore.Options{Endpoints: c.Endpoints[i : i+1], Prefix: "/faults", Retain: -1})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// setClocks restarts the members one after the other with their clocks so far ahead.
func setClocks(t testing.TB, c *etcdtest.Cluster, ahead ...time.Duration) {
	t.Helper()
	for i, m := range c.Members {
		m.Kill()
		m.Clock(ahead[i])
		m.Restart()
		res, err := http.Get("http://" + m.Endpoint + "/health")
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		at, err := http.ParseTime(res.Header.Get("Date"))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(ahead[i]), at, time.Minute)
	}
}

// TestClocksApart: the clocks of the members are hours apart, and each of them goes back once. Nothing
// depends on them.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t)
	var stores []*etcdstore.Store
	for range 2 {
		s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/clocks", Retain: time.Minute})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		stores = append(stores, s)
	}
	l := startLoad(t, stores, 4)
	running := l.watch()
	const day = 24 * time.Hour
	for _, ahead := range [][]time.Duration{{day, 0, -day}, {-day, day, 0}, {0, -day, day}} {
		setClocks(t, c, ahead...)
		l.progress(50)
	}
	l.check(running)
}

// TestAllGone: no member is there for a while. Watches wait, reads and commits end with an
// error when their context does, and all goes on when the members are back.
func TestAllGone(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s := open(t, m, "/gone")
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	l := startLoad(t, []*etcdstore.Store{s}, 4)
	running := l.watch()
	l.progress(50)
	for range 2 {
		m.Kill()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := s.Get(ctx, "k", 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		require.Error(t, s.Writable(t.Context()))
		m.Restart()
		l.progress(50)
	}
	l.check(running)
	require.NoError(t, s.Check(t.Context()))
	require.Positive(t, s.Size())
}

// TestReadsBesideAMemberAway: a member that is cut off from the others says nothing for seconds,
// and reads get their answer from another one long before the store gives up.
// It runs alone because time counts.
func TestReadsBesideAMemberAway(t *testing.T) {
	c := etcdtest.StartCluster(t)
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/away", Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	put(t, s, "a", "1")
	away := len(c.Members)
	if testing.Short() {
		away = 1
	}
	for i := range away {
		c.Isolate(i)
		_, err := s.Revision(t.Context()) // it takes as long as the others need to agree on who leads
		require.NoError(t, err)
		for range 12 {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			_, err := s.Get(ctx, "a", 0)
			cancel()
			require.NoError(t, err)
		}
		c.Rejoin(i)
		c.Members[i].Ready()
	}
}

// TestTwoMembersOfWhichOneIsAway: a store that knows two members works through the one that has a leader,
// whichever it asks first, for a watch, which takes several calls, and for a token, too.
func TestTwoMembersOfWhichOneIsAway(t *testing.T) {
	t.Parallel()
	for name, opened := range map[string]func(c *etcdtest.Cluster) etcdstore.Options{
		"nobody": func(*etcdtest.Cluster) etcdstore.Options { return etcdstore.Options{Prefix: "/ours", Retain: -1} },
		"user":   func(c *etcdtest.Cluster) etcdstore.Options { return withUser(t, c.Members[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdtest.StartCluster(t)
			o := opened(c)
			o.Endpoints = c.Endpoints[:2]
			c.Isolate(1)
			for i := range 4 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				s, err := etcdstore.Open(ctx, o)
				require.NoError(t, err)
				at, err := s.Revision(ctx)
				require.NoError(t, err)
				put(t, s, fmt.Sprint(i), "1")
				seen := false
				for _, err := range s.Watch(ctx, "", at) {
					require.NoError(t, err)
					seen = true
					break
				}
				require.True(t, seen)
				require.NoError(t, s.Close())
				cancel()
			}
		})
	}
}

// TestCommitsBesideAMemberAway: a commit gets its answer soon, through another member if one
// says nothing, and is made once. It runs alone because time counts.
func TestCommitsBesideAMemberAway(t *testing.T) {
	c := etcdtest.StartCluster(t)
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: c.Endpoints, Prefix: "/away", Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	newest := put(t, s, "a", "1")
	some := func() {
		_, err := s.Revision(t.Context()) // it takes as long as the others need to agree on who leads
		require.NoError(t, err)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			at, err := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("2"), Expect: newest})
			cancel()
			require.NoError(t, err)
			newest = at
		}
	}
	for i, m := range c.Members {
		c.Isolate(i)
		some()
		c.Rejoin(i)
		m.Ready()
		m.Pause()
		some()
		m.Resume()
		m.Ready()
		if testing.Short() {
			return
		}
	}
}
