package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// Loop is a background loop, see registry.Loop.
type Loop = registry.Loop

// Bounds of the loops' pace.
const (
	loopWorkers  = 16 // keys of one loop at a time
	firstRetry   = 5 * time.Millisecond
	longestRetry = 30 * time.Second
	soon         = 5 * time.Second // Settle waits for what is due within this
)

// Run runs the background loops until the context ends or the server shuts
// down, and returns when they have ended. Call it once.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.closing { // shut down before it began: nothing to run
		s.mu.Unlock()
		return nil
	}
	if s.runners != nil {
		s.mu.Unlock()
		return errors.New("the loops were started already")
	}
	s.loopsRun.Add(1)
	for _, l := range s.loops {
		s.runners = append(s.runners, newRunner(s, l))
	}
	runners := s.runners
	s.mu.Unlock()
	for _, r := range runners {
		r.pull() // what is there now; what goes from here on was seen
	}
	close(s.begun)
	defer s.loopsRun.Done()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.life, cancel)
	defer stop()
	var all sync.WaitGroup
	for _, r := range runners {
		all.Go(func() { r.run(ctx) })
	}
	all.Wait()
	return nil
}

// Running is closed when Run has begun and the background loops know every
// object that was there: an owner deleted after that is one they have seen.
func (s *Server) Running() <-chan struct{} { return s.begun }

// Settle waits until the background loops have seen every commit and have
// nothing to do: no key waits, and none is due again within five seconds. It
// waits for Run to begin.
func (s *Server) Settle(ctx context.Context) error {
	select {
	case <-s.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		rev, err := s.backend.Revision(ctx)
		if err != nil {
			return err
		}
		if err := s.hub.Wait(ctx, rev); err != nil {
			return err
		}
		s.mu.Lock()
		runners := s.runners
		s.mu.Unlock()
		for _, r := range runners {
			if err := r.settle(ctx, rev); err != nil {
				return fmt.Errorf("loop %s has not settled: %w", r.loop.Name, err)
			}
		}
		if now, err := s.backend.Revision(ctx); err != nil || now == rev {
			return err
		}
	}
}

// runner runs one loop: a queue of keys, each with the time when it is due.
type runner struct {
	server *Server
	loop   Loop
	feed   *watch.Feed

	mu       sync.Mutex // guards the rest
	due      map[string]time.Time
	retry    map[string]time.Duration // the last pause of keys that failed
	busy     bool
	wake     context.CancelFunc // ends the current rest
	seen     int64              // the feed's revision
	progress chan struct{}      // closed and replaced when any of these change
}

func newRunner(s *Server, l Loop) *runner {
	feed := s.hub.Feed
	if l.Identity {
		feed = s.hub.IdentityFeed
	}
	return &runner{
		server: s, loop: l, feed: feed(l.Types...), busy: true,
		due: map[string]time.Time{}, retry: map[string]time.Duration{}, progress: make(chan struct{}),
	}
}

func (r *runner) run(ctx context.Context) {
	defer r.feed.Close()
	for ctx.Err() == nil {
		r.pull()
		keys, next := r.take()
		if len(keys) == 0 {
			r.rest(ctx, next)
			continue
		}
		var batch sync.WaitGroup
		for _, k := range keys {
			batch.Go(func() { r.reconcile(ctx, k) })
		}
		batch.Wait()
	}
}

// pull lets the loop see what changed.
func (r *runner) pull() {
	changes, reset := r.feed.Changes()
	if reset && r.loop.Forget != nil {
		r.loop.Forget()
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range changes {
		for _, k := range r.loop.Observe(c) {
			r.due[k] = now
			delete(r.retry, k)
		}
	}
	r.seen = int64(r.feed.Revision())
	r.changed()
}

// take removes the keys that are due from the queue, up to the number of
// workers, and tells when the next one is.
func (r *runner) take() (keys []string, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for k, at := range r.due {
		switch {
		case at.After(now):
			if next.IsZero() || at.Before(next) {
				next = at
			}
		case len(keys) < loopWorkers:
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		delete(r.due, k)
	}
	r.busy = len(keys) > 0
	r.changed()
	slices.Sort(keys)
	return keys, next
}

// rest waits for a change or for the next key.
func (r *runner) rest(ctx context.Context, next time.Time) {
	ctx, wake := context.WithCancel(ctx)
	defer wake()
	if !next.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, next)
		defer cancel()
	}
	r.mu.Lock()
	r.wake = wake
	r.changed()
	r.mu.Unlock()
	_ = r.feed.Wait(ctx) // the deadline is as good a reason to go on as a change
}

func (r *runner) reconcile(ctx context.Context, key string) {
	again, err := r.loop.Reconcile(ctx, r.server.client, key)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		again = min(longestRetry, max(firstRetry, 2*r.retry[key]))
		r.retry[key] = again
		r.server.log.Warn("background loop failed", "loop", r.loop.Name, "key", key, "again", again, "error", err)
	} else {
		delete(r.retry, key)
	}
	if again > 0 {
		r.due[key] = time.Now().Add(again)
	}
}

// changed wakes those who wait for progress. The lock is held.
func (r *runner) changed() {
	close(r.progress)
	r.progress = make(chan struct{})
}

// settle waits until the loop has seen a revision and has nothing to do.
func (r *runner) settle(ctx context.Context, rev storage.Revision) error {
	for {
		r.mu.Lock()
		idle := !r.busy && r.seen >= int64(rev)
		limit := time.Now().Add(soon)
		for _, at := range r.due {
			idle = idle && at.After(limit)
		}
		if r.seen < int64(rev) && r.wake != nil {
			r.wake() // commits of other types do not
		}
		progress := r.progress
		r.mu.Unlock()
		if idle {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
