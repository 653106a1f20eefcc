package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/storagetest"
)

// several is a storage.Backend of several stores over one database: each call goes to another
// one. What holds for it holds across processes.
type several struct {
	stores []*sqlstore.Store
	turn   atomic.Int64
}

func openSeveral(t testing.TB, o sqlstore.Options) *several {
	s := &several{}
	for range 3 {
		one, err := sqlstore.Open(t.Context(), o)
		require.NoError(t, err)
		s.stores = append(s.stores, one)
	}
	return s
}

func (s *several) next() *sqlstore.Store { return s.stores[int(s.turn.Add(1))%len(s.stores)] }

func (s *several) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	return s.next().Get(ctx, key, at)
}

func (s *several) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	return s.next().Scan(ctx, prefix, start, at)
}

func (s *several) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	return s.next().Commit(ctx, ws...)
}

func (s *several) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return s.next().Watch(ctx, prefix, after)
}

func (s *several) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return s.next().History(ctx, prefix, after, last)
}

func (s *several) Revision(ctx context.Context) (storage.Revision, error) {
	return s.next().Revision(ctx)
}

func (s *several) Compact(ctx context.Context, before storage.Revision) error {
	return s.next().Compact(ctx, before)
}

func (s *several) Stamp(ctx context.Context, name, value string) (string, error) {
	return s.next().Stamp(ctx, name, value)
}

func (s *several) Close() error {
	var errs []error
	for _, one := range s.stores {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// TestSeveral: several stores over one database keep the contract together.
func TestSeveral(t *testing.T) {
	needPostgres(t)
	storagetest.Run(t, func(t testing.TB) storage.Backend { return openSeveral(t, empty(t)) })
}

// load writes through several stores, each key once, and watches through each of them.
type load struct {
	t    testing.TB
	many *several
	base storage.Revision

	mu    sync.Mutex
	acked map[string]storage.Revision
	lost  int           // commits without an answer
	news  chan struct{} // closed when something is acknowledged

	stop    chan struct{}
	writes  sync.WaitGroup
	watches []<-chan watched
}

type watched struct {
	seen map[string]storage.Revision
	err  error
}

func startLoad(t testing.TB, many *several, writers int) *load {
	base, err := many.Revision(t.Context())
	require.NoError(t, err)
	l := &load{t: t, many: many, base: base, acked: map[string]storage.Revision{}, news: make(chan struct{}), stop: make(chan struct{})}
	for w := range writers {
		l.writes.Go(func() { l.write(many.stores[w%len(many.stores)], w) })
	}
	for _, s := range many.stores {
		w := make(chan watched, 1)
		go func() {
			seen, err := l.seen(s)
			w <- watched{seen, err}
		}()
		l.watches = append(l.watches, w)
	}
	return l
}

func (l *load) write(s *sqlstore.Store, w int) {
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		default:
		}
		key := fmt.Sprintf("k/%d/%06d", w, i)
		revision, err := s.Commit(l.t.Context(), storage.Write{Key: key, Value: []byte(key)},
			storage.Write{Key: fmt.Sprintf("last/%d", w), Value: []byte(key), Expect: storage.AnyRevision})
		l.mu.Lock()
		if err != nil {
			l.lost++
		} else {
			l.acked[key] = revision
			close(l.news)
			l.news = make(chan struct{})
		}
		l.mu.Unlock()
	}
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
func (l *load) seen(s *sqlstore.Store) (seen map[string]storage.Revision, err error) {
	seen = map[string]storage.Revision{}
	last, lasts := l.base, map[string]storage.Record{}
	for commit, err := range s.Watch(l.t.Context(), "", l.base) {
		switch {
		case err != nil:
			return seen, err
		case commit[0].Revision != last+1:
			return seen, fmt.Errorf("revision %d after %d", commit[0].Revision, last)
		case commit[0].Key == "end":
			return seen, nil
		case len(commit) != 2 || string(commit[0].Value) != string(commit[1].Value):
			return seen, fmt.Errorf("a commit in part: %v", commit)
		case commit[1].Prev.Revision != lasts[commit[1].Key].Revision:
			return seen, fmt.Errorf("%v replaced %v", commit[1].Prev, lasts[commit[1].Key])
		}
		last = commit[0].Revision
		seen[commit[0].Key], lasts[commit[1].Key] = last, commit[1].Record
	}
	return seen, errors.New("the watch ended")
}

// check ends the writers and compares: what was acknowledged is there, and every watch, those
// that run since the beginning and a new one, has yielded the same commits.
func (l *load) check() {
	l.t.Helper()
	close(l.stop)
	l.writes.Wait()
	l.t.Logf("%d commits, %d without an answer", len(l.acked), l.lost)
	_, err := l.many.Commit(l.t.Context(), storage.Write{Key: "end", Value: []byte{}})
	require.NoError(l.t, err)
	fresh, err := l.seen(l.many.stores[0])
	require.NoError(l.t, err)
	for _, w := range l.watches {
		got := <-w
		require.NoError(l.t, got.err)
		require.Equal(l.t, fresh, got.seen)
	}
	_, records, err := l.many.Scan(l.t.Context(), "k/", "", 0)
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
	for _, s := range l.many.stores {
		require.NoError(l.t, s.Check(l.t.Context()))
	}
}

// TestTerminated: the server ends all connections, again and again, under writers and watches.
func TestTerminated(t *testing.T) {
	t.Parallel()
	o := empty(t)
	many := openSeveral(t, o)
	defer func() { require.NoError(t, many.Close()) }()
	l := startLoad(t, many, 6)
	for range 5 {
		l.progress(50)
		query(t, o, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()`, o.Schema)
	}
	l.progress(50)
	l.check()
}

// TestServerKilled: all processes of the server are killed under writers and watches, and it is
// started again. It writes to the disk as it does by itself.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	c := own(t)
	many := openSeveral(t, sqlstore.Options{Postgres: c.url(), Retain: forever})
	defer func() { require.NoError(t, many.Close()) }()
	l := startLoad(t, many, 6)
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		l.progress(50)
		c.kill()
		require.NoError(t, c.start())
	}
	l.progress(50)
	l.check()
}
