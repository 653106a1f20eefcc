// Package controllers does what a server does without being asked: it runs
// controllers, among them those that every server has.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"orch.io/controlplane/controller"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// Bounds of the controllers' pace.
const (
	workers      = 16 // keys of one controller at a time
	firstPause   = 5 * time.Millisecond
	longestPause = 30 * time.Second
	soon         = 5 * time.Second // Settle waits for what is due within this
)

// Runner runs one controller: one goroutine shows it what changes and starts work on
// the keys that are due, each in a goroutine of its own.
type Runner struct {
	controller controller.Controller
	client     controller.Client
	log        *slog.Logger
	panicked   Panicked
	feed       *watch.Feed

	mu       sync.Mutex // guards the rest
	queue    queue
	seen     storage.Revision   // up to which the controller was shown everything
	wake     context.CancelFunc // ends the current rest
	progress chan struct{}      // closed and replaced when any of these change
}

// Panicked is told of a panic of a controller's code that was recovered, by the
// deferred function that did.
type Panicked func(controller string, p any, about ...any)

// NewRunner returns a runner that has seen nothing.
func NewRunner(c controller.Controller, hub *watch.Hub, client controller.Client, log *slog.Logger, panicked Panicked) *Runner {
	feed := hub.Feed
	if c.Identity {
		feed = hub.IdentityFeed
	}
	return &Runner{
		controller: c, client: client, log: log, panicked: panicked, feed: feed(c.Types...),
		queue: newQueue(), wake: func() {}, progress: make(chan struct{}),
	}
}

// Run works until the context ends, and returns when all work has ended.
func (r *Runner) Run(ctx context.Context) {
	defer r.feed.Close()
	var work sync.WaitGroup
	defer work.Wait()
	for ctx.Err() == nil {
		r.round(ctx, &work)
	}
}

// round shows the controller what changed, starts what is due, and rests until there
// is more of either.
func (r *Runner) round(ctx context.Context, work *sync.WaitGroup) {
	rest, wake := context.WithCancel(ctx) // before all else: what ends from here on ends the rest
	defer wake()
	r.mu.Lock()
	r.wake = wake
	r.mu.Unlock()
	r.Pull()
	if next := r.start(ctx, work); !next.IsZero() {
		var cancel context.CancelFunc
		rest, cancel = context.WithDeadline(rest, next)
		defer cancel()
	}
	_ = r.feed.Wait(rest) // the end of the rest is as good a reason to go on as a change
}

// Pull shows the controller what changed. It is for the caller of Run, before that.
func (r *Runner) Pull() {
	changes, reset := r.feed.Changes()
	if reset && r.controller.Forget != nil {
		r.forget()
	}
	var keys []string
	for c := range changes {
		keys = append(keys, r.observe(c)...)
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		r.queue.ask(k, now)
	}
	r.seen = r.feed.Revision()
	r.changed()
}

// observe shows the controller a change. One that it panics at is passed over.
func (r *Runner) observe(c controller.Event) []string {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(r.controller.Name, p, "resource", c.Resource, "namespace", c.Key.Namespace, "name", c.Key.Name)
		}
	}()
	return r.controller.Observe(c)
}

// Ask makes a key due after some time, unless it is due before.
func (r *Runner) Ask(key string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue.ask(key, time.Now().Add(after))
	r.wake()
	r.changed()
}

func (r *Runner) forget() {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(r.controller.Name, p)
		}
	}()
	r.controller.Forget()
}

// start begins work on the keys that are due and tells when the next one is.
func (r *Runner) start(ctx context.Context, work *sync.WaitGroup) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		t, next := r.queue.take(time.Now())
		if t == nil {
			return next
		}
		work.Go(func() { r.reconcile(ctx, t) })
	}
}

// errUnfinished is the error of a call that panicked or ended its goroutine.
var errUnfinished = errors.New("the call did not return")

func (r *Runner) reconcile(ctx context.Context, t *task) {
	again, err := time.Duration(0), errUnfinished
	defer func() {
		if p := recover(); p != nil {
			r.panicked(r.controller.Name, p, "key", t.key)
		}
		r.reconciled(ctx, t, again, err)
	}()
	again, err = r.controller.Reconcile(ctx, r.client, t.key)
}

// reconciled ends the work on a key and says when it is due again: after a
// failure with growing pauses.
func (r *Runner) reconciled(ctx context.Context, t *task, again time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		again = min(longestPause, max(firstPause, 2*t.pause))
		t.pause = again
		if ctx.Err() == nil {
			r.log.Warn("controller failed", "controller", r.controller.Name, "key", t.key, "again", again, "error", err)
		}
	} else {
		t.pause = 0
	}
	var at time.Time
	if again > 0 {
		at = time.Now().Add(again)
	}
	r.queue.done(t, at)
	r.wake()
	r.changed()
}

// changed wakes those who wait for progress. The lock is held.
func (r *Runner) changed() {
	close(r.progress)
	r.progress = make(chan struct{})
}

// Settle waits until the controller has seen a revision and has nothing to do, now
// and within five seconds.
func (r *Runner) Settle(ctx context.Context, rev storage.Revision) error {
	for {
		r.mu.Lock()
		settled := r.seen >= rev && r.queue.idle(time.Now().Add(soon))
		if r.seen < rev {
			r.wake() // commits of other types do not
		}
		progress := r.progress
		r.mu.Unlock()
		if settled {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return fmt.Errorf("controller %s has not settled: %w", r.controller.Name, ctx.Err())
		}
	}
}
