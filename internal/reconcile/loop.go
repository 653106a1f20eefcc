// Package reconcile runs the loop of a controller: it maps changes to keys and reconciles
// each key, again after an error.
package reconcile

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/workqueue"
	"orch.io/controlplane/storage"
)

// Feed is a source of changes; see client.Feed.
type Feed[E any] interface {
	Changes() (changes iter.Seq[E], reset bool)
	Wait(ctx context.Context) error
	Revision() storage.Revision
	Close()
}

// Options describe a controller. MapEvent, Attrs, Reconcile, Log and Panicked must be set.
type Options[E any] struct {
	Name      string
	Workers   int                // zero is the default of workqueue
	MapEvent  func(e E) []string // returns the keys to reconcile after a change
	Attrs     func(e E) []any    // identifies a change in logs: keys and values
	Forget    func()             // drops the state of MapEvent; may be nil
	Reconcile func(ctx context.Context, key string) (again time.Duration, err error)

	Log      *slog.Logger
	Metrics  prometheus.Registerer     // nil means none
	Panicked func(p any, attrs ...any) // is called by the deferred function that recovered a panic
}

// Loop runs one controller. One goroutine maps changes to keys and starts Reconcile for each
// due key, in a goroutine of its own.
type Loop[E any] struct {
	o     Options[E]
	feed  Feed[E]
	queue *workqueue.Queue
	seen  atomic.Int64  // revision up to which all changes are mapped
	ended chan struct{} // closed by Close
}

// New returns a loop over a feed, which the loop closes. The error names the metrics that
// could not be registered; the feed is closed then.
func New[E any](o Options[E], feed Feed[E]) (*Loop[E], error) {
	queue, err := workqueue.New(workqueue.Options{
		Name: o.Name, Workers: o.Workers, Metrics: o.Metrics, Work: o.Reconcile,
		Failed: func(key string, again time.Duration, err error) {
			o.Log.Warn("controller failed", "controller", o.Name, "key", key, "again", again, "error", err)
		},
		Panicked: func(key string, p any) { o.Panicked(p, "key", key) },
	})
	if err != nil {
		feed.Close()
		return nil, err
	}
	return &Loop[E]{o: o, feed: feed, queue: queue, ended: make(chan struct{})}, nil
}

// Run runs the controller until the context ends, and returns when all calls of Reconcile
// have returned. It closes the loop.
func (l *Loop[E]) Run(ctx context.Context) {
	defer l.Close()
	var work sync.WaitGroup
	defer work.Wait()
	for ctx.Err() == nil {
		l.round(ctx, &work)
	}
}

// Close frees the resources of a loop that Run is not called for.
func (l *Loop[E]) Close() {
	l.feed.Close()
	l.queue.Close()
	close(l.ended)
}

// round maps the changes, starts the due keys, and waits for the next change or due key.
func (l *Loop[E]) round(ctx context.Context, work *sync.WaitGroup) {
	rest, wake := context.WithCancel(ctx) // first: work that ends from now on ends the wait
	defer wake()
	l.queue.WakeBy(wake)
	l.Pull()
	if next := l.queue.Start(ctx, work); !next.IsZero() {
		var cancel context.CancelFunc
		rest, cancel = context.WithDeadline(rest, next)
		defer cancel()
	}
	_ = l.feed.Wait(rest) // any error means that the round ends
}

// Pull maps the changes that are available. Call it before Run only.
func (l *Loop[E]) Pull() {
	changes, reset := l.feed.Changes()
	if reset {
		l.Forget()
	}
	var keys []string
	for e := range changes {
		keys = append(keys, l.mapEvent(e)...)
	}
	l.queue.AddAfter(0, keys...)
	l.seen.Store(int64(l.feed.Revision())) // after Ask, because Settle reads seen first
	l.queue.Touch()
}

// mapEvent calls MapEvent. A change at which MapEvent panics is skipped.
func (l *Loop[E]) mapEvent(e E) []string {
	defer func() {
		if p := recover(); p != nil {
			l.o.Panicked(p, l.o.Attrs(e)...)
		}
	}()
	return l.o.MapEvent(e)
}

// Ask makes a key due after a delay, unless it is due earlier.
func (l *Loop[E]) Ask(key string, after time.Duration) {
	l.queue.AddAfter(after, key)
	l.queue.Wake()
}

// Forget drops the state of MapEvent. Call it before Pull only.
func (l *Loop[E]) Forget() {
	if l.o.Forget == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			l.o.Panicked(p)
		}
	}()
	l.o.Forget()
}

// Settle waits until the changes up to a revision are mapped and no key is being reconciled
// or due within five seconds, or until the loop is closed.
func (l *Loop[E]) Settle(ctx context.Context, rev storage.Revision) error {
	for {
		progress := l.queue.Progress()
		switch {
		case l.seen.Load() < int64(rev):
			l.queue.Wake() // commits of other types do not wake the feed
		case l.queue.Idle():
			return nil
		}
		select {
		case <-progress:
		case <-l.ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("controller %s has not settled: %w", l.o.Name, ctx.Err())
		}
	}
}
