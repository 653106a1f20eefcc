// Package controllers does what a server does without being asked: it runs
// controllers, among them those that every server has.
package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/controller"
	"orch.io/controlplane/internal/workqueue"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Runner runs one controller: one goroutine shows it what changes and starts work on
// the keys that are due, each in a goroutine of its own.
type Runner struct {
	controller controller.Controller
	client     controller.Client
	log        *slog.Logger
	panicked   Panicked
	feed       *objectcache.Feed
	queue      *workqueue.Queue
	seen       atomic.Int64  // the revision up to which the controller was shown everything
	ended      chan struct{} // closed when Run has returned
}

// Panicked is told of a panic of a controller's code that was recovered, by the
// deferred function that did.
type Panicked func(controller string, p any, about ...any)

// NewRunner returns a runner that has seen nothing. An error says which metrics are not
// registered.
func NewRunner(c controller.Controller, hub *objectcache.Set, client controller.Client, log *slog.Logger, to prometheus.Registerer, panicked Panicked) (*Runner, error) {
	feed := hub.Feed
	if c.Identity {
		feed = hub.IdentityFeed
	}
	queue, err := workqueue.New(workqueue.Options{
		Name: c.Name, Metrics: to,
		Work: func(ctx context.Context, key string) (time.Duration, error) { return c.Reconcile(ctx, client, key) },
		Failed: func(key string, again time.Duration, err error) {
			log.Warn("controller failed", "controller", c.Name, "key", key, "again", again, "error", err)
		},
		Panicked: func(key string, p any) { panicked(c.Name, p, "key", key) },
	})
	if err != nil {
		return nil, err
	}
	return &Runner{controller: c, client: client, log: log, panicked: panicked, feed: feed(c.Types...), queue: queue, ended: make(chan struct{})}, nil
}

// Run works until the context ends, and returns when all work has ended.
func (r *Runner) Run(ctx context.Context) {
	defer r.Close()
	var work sync.WaitGroup
	defer work.Wait()
	for ctx.Err() == nil {
		r.round(ctx, &work)
	}
}

// Close frees what a runner holds that is not run.
func (r *Runner) Close() {
	r.feed.Close()
	r.queue.Close()
	close(r.ended)
}

// round shows the controller what changed, starts what is due, and rests until there
// is more of either.
func (r *Runner) round(ctx context.Context, work *sync.WaitGroup) {
	rest, wake := context.WithCancel(ctx) // before all else: what ends from here on ends the rest
	defer wake()
	r.queue.WakeBy(wake)
	r.Pull()
	if next := r.queue.Start(ctx, work); !next.IsZero() {
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
	r.queue.Ask(0, keys...)
	r.seen.Store(int64(r.feed.Revision())) // after the keys, for Settle
	r.queue.Touch()
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
	r.queue.Ask(after, key)
	r.queue.Wake()
}

// Forget drops what the controller remembers of an earlier runner. It is for the caller of
// Run, before Pull.
func (r *Runner) Forget() {
	if r.controller.Forget != nil {
		r.forget()
	}
}

func (r *Runner) forget() {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(r.controller.Name, p)
		}
	}()
	r.controller.Forget()
}

// Settle waits until the controller has seen a revision and has nothing to do, now
// and within five seconds, or until Run has returned.
func (r *Runner) Settle(ctx context.Context, rev storage.Revision) error {
	for {
		progress := r.queue.Progress()
		switch {
		case r.seen.Load() < int64(rev):
			r.queue.Wake() // commits of other types do not
		case r.queue.Idle():
			return nil
		}
		select {
		case <-progress:
		case <-r.ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("controller %s has not settled: %w", r.controller.Name, ctx.Err())
		}
	}
}
