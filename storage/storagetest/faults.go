package storagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// RunFaults tests stores that use the same database engine, which must be empty, while the engine fails. It commits and
// watches through all stores while happen runs, which crashes, pauses or disconnects the engine. happen calls
// progress to wait until the given number of further commits are acknowledged.
//
// At the end, RunFaults requires that all acknowledged commits exist, and that all watches, those from the beginning and
// a new watch, have yielded the same commits. It also requires that Revision never returned a revision older than an
// acknowledged commit.
//
// It returns the errors of the commits that failed, which may or may not have happened. A store that determines the
// outcome of commits after a failure has none.
func RunFaults(t testing.TB, stores []storage.Backend, happen func(progress func(commits int))) (failed []error) {
	t.Helper()
	l := startLoad(t.Context(), stores)
	defer l.cancel()
	happen(func(n int) {
		t.Helper()
		require.NoError(t, l.progress(n))
	})
	err := l.check()
	t.Logf("%d commits, and %d that failed", len(l.acked), len(l.failed))
	require.NoError(t, err)
	return l.failed
}

// faultTime is the maximum time for the commits of progress and for the end of the test.
const faultTime = time.Minute

// load writes through several stores of one engine that has no other users. It writes each key once. It also watches
// through each store and queries the newest revision of each.
type load struct {
	ctx     context.Context
	end     context.CancelFunc
	stores  []storage.Backend
	stop    chan struct{}  // closed to stop the writers
	writers sync.WaitGroup // the goroutines of write and ask
	watches sync.WaitGroup

	mu     sync.Mutex                    // guards the fields below
	acked  map[string]storage.Revision   // acknowledged commits by key
	newest storage.Revision              // newest acknowledged revision
	failed []error                       // errors of commits
	seen   []map[string]storage.Revision // commits that each watch has yielded, by key
	wrong  []error                       // violations
}

func startLoad(ctx context.Context, stores []storage.Backend) *load {
	l := &load{stores: stores, stop: make(chan struct{}), acked: map[string]storage.Revision{}}
	l.ctx, l.end = context.WithCancel(ctx)
	for w := range 6 {
		l.writers.Go(func() { l.write(stores[w%len(stores)], w) })
	}
	for _, s := range stores {
		l.writers.Go(func() { l.ask(s) })
		l.watches.Go(func() { l.watch(s) })
	}
	return l
}

// cancel stops all goroutines and waits for them.
func (l *load) cancel() {
	l.end()
	l.writers.Wait()
	l.watches.Wait()
}

func (l *load) notes(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, err)
}

// stopped reports whether the writers should stop.
func (l *load) stopped() bool {
	select {
	case <-l.stop:
		return true
	case <-l.ctx.Done():
		return true
	default:
		return false
	}
}

// write commits until stop is closed. Each commit writes a new key and the key last/w.
func (l *load) write(s storage.Backend, w int) {
	last := storage.Write{Key: fmt.Sprintf("last/%d", w), Expect: storage.AnyRevision}
	for i := 0; !l.stopped(); i++ {
		key := fmt.Sprintf("k/%d/%06d", w, i)
		last.Value = []byte(key)
		revision, err := s.Commit(l.ctx, storage.Write{Key: key, Value: []byte(key)}, last)
		l.mu.Lock()
		if err != nil {
			l.failed = append(l.failed, err)
		} else {
			l.acked[key], l.newest = revision, max(l.newest, revision)
		}
		l.mu.Unlock()
	}
}

// state returns the number of acknowledged commits and the newest acknowledged revision.
func (l *load) state() (commits int, newest storage.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked), l.newest
}

// ask queries the newest revision repeatedly until stop is closed, and once afterwards.
func (l *load) ask(s storage.Backend) {
	var last storage.Revision
	for ended := false; !ended; time.Sleep(time.Millisecond) {
		ended = l.stopped()
		_, least := l.state()
		least = max(last, least)
		at, err := s.Revision(l.ctx)
		if err == nil && at < least {
			l.notes(fmt.Errorf("Revision returned %d after %d", at, least))
		}
		last = max(last, at)
	}
}

// progress waits until n further commits are acknowledged.
func (l *load) progress(n int) error {
	have, _ := l.state()
	for begun, want := time.Now(), have+n; have < want; have, _ = l.state() {
		if time.Since(begun) > faultTime {
			return fmt.Errorf("%d of %d commits after %v", have, want, faultTime)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// watch checks a watch from the beginning to the commit of the key "end".
func (l *load) watch(s storage.Backend) {
	var last storage.Revision
	seen, lasts := map[string]storage.Revision{}, map[string]storage.Record{}
	for commit, err := range s.Watch(l.ctx, "", 0) {
		if err == nil {
			err = whole(commit, last)
		}
		switch {
		case err != nil:
		case commit[0].Key == "end":
			l.mu.Lock()
			defer l.mu.Unlock()
			l.seen = append(l.seen, seen)
			return
		case len(commit) != 2 || string(commit[0].Value) != string(commit[1].Value):
			err = fmt.Errorf("the watch yields an incomplete commit: %v", commit)
		case commit[1].Prev.Revision != lasts[commit[1].Key].Revision:
			err = fmt.Errorf("%v replaced %v, and the watch had %v", commit[1].Record, commit[1].Prev, lasts[commit[1].Key])
		}
		if err != nil {
			l.notes(err)
			return
		}
		last = commit[0].Revision
		seen[commit[0].Key], lasts[commit[1].Key] = last, commit[1].Record
	}
	l.notes(errors.New("the watch ended before the last commit, or did not reach it in time"))
}

// check stops the writers and compares the acknowledged commits, the records of the store and the commits that the
// watches have yielded.
func (l *load) check() error {
	close(l.stop)
	l.writers.Wait()
	defer time.AfterFunc(faultTime, l.end).Stop()
	for err := errors.New("not yet"); err != nil; {
		_, err = l.stores[0].Commit(l.ctx, storage.Write{Key: "end", Value: []byte{}, Expect: storage.AnyRevision})
		if err != nil && l.ctx.Err() != nil {
			return err
		}
	}
	l.watches.Go(func() { l.watch(l.stores[0]) })
	l.watches.Wait()
	if err := errors.Join(l.wrong...); err != nil {
		return err
	}
	there, err := revisions(l.ctx, l.stores[len(l.stores)-1])
	if err != nil {
		return err
	}
	for key, revision := range l.acked {
		if there[key] != revision {
			return fmt.Errorf("%q was committed at revision %d, but has revision %d", key, revision, there[key])
		}
	}
	for _, seen := range l.seen {
		if !maps.Equal(there, seen) {
			return fmt.Errorf("a watch has yielded %d commits, the store has %d, or their revisions differ", len(seen), len(there))
		}
	}
	return nil
}

// revisions returns the revisions of the keys that a load has written.
func revisions(ctx context.Context, s storage.Backend) (map[string]storage.Revision, error) {
	_, records, err := s.Scan(ctx, "k/", "", 0)
	if err != nil {
		return nil, err
	}
	there := map[string]storage.Revision{}
	for rec, err := range records {
		if err == nil && rec.Key != string(rec.Value) {
			err = fmt.Errorf("the value of %q is %q", rec.Key, rec.Value)
		}
		if err != nil {
			return nil, err
		}
		there[rec.Key] = rec.Revision
	}
	return there, nil
}
