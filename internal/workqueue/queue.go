// Package workqueue runs work on keys: at most one call at a time per key, and again after a
// failure.
package workqueue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	defaultWorkers = 16
	firstPause     = 5 * time.Millisecond // after the first failure of a key; doubles with each further failure
	longestPause   = 30 * time.Second
	idleAhead      = 5 * time.Second // see Idle
)

// Options configure a queue.
type Options struct {
	// Name is the name of the queue in metrics.
	Name string

	// Workers limits the number of keys that are worked on concurrently; the default is 16.
	Workers int

	// Work processes a key that is due; it is never called concurrently for the same key. again is
	// the time after which the key is due again; 0 means not before the next Ask. If Work returns
	// an error or panics, the key is due again after a pause that doubles with each consecutive
	// failure.
	Work func(ctx context.Context, key string) (again time.Duration, err error)

	// Failed is called with the errors of Work, unless the context has ended. again is the pause
	// before the next attempt.
	Failed func(key string, again time.Duration, err error)

	// Panicked is called in the deferred function that recovers a panic of Work.
	Panicked func(key string, p any)

	// Metrics is the registerer for metrics; nil disables them.
	Metrics prometheus.Registerer
}

// ErrUnfinished is the error passed to Failed if Work panicked or called runtime.Goexit.
var ErrUnfinished = errors.New("the call did not return")

// Queue holds keys and the times when they are due. It is safe for concurrent use.
type Queue struct {
	o      Options
	counts *counts

	mu       sync.Mutex // guards the fields below
	tasks    tasks
	wake     func()        // wakes the goroutine that calls Start
	progress chan struct{} // closed and replaced when a key is added, or work on a key ends
}

// New returns an empty queue, or an error if its metrics cannot be registered. Call Close, or let
// Run return, when the queue is no longer used.
func New(o Options) (*Queue, error) {
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	counts, err := newCounts(o.Metrics, o.Name)
	if err != nil {
		return nil, err
	}
	q := &Queue{o: o, counts: counts, tasks: newTasks(o.Workers), wake: func() {}, progress: make(chan struct{})}
	counts.states.add(q, o.Name)
	return q, nil
}

// Close removes the queue from the metrics. It does not stop work.
func (q *Queue) Close() { q.counts.states.remove(q) }

// AddAfter makes keys due after a duration, or earlier if they are due earlier already. It resets the
// pause of earlier failures. Call Wake afterwards, so that work on the keys starts.
func (q *Queue) AddAfter(after time.Duration, keys ...string) {
	if len(keys) == 0 {
		return
	}
	at := time.Now().Add(after)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, k := range keys {
		if q.tasks.ask(k, at) {
			q.counts.added.Inc()
		}
	}
	q.changed()
}

// WakeBy sets the function that wakes the goroutine that calls Start. The queue calls it in Wake
// and when work on a key ends, with its lock held.
func (q *Queue) WakeBy(wake func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake = wake
}

// Wake wakes the goroutine that calls Start.
func (q *Queue) Wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake()
}

// Run works on keys until ctx ends. It then waits for running work to end and closes the queue.
func (q *Queue) Run(ctx context.Context) {
	defer q.Close()
	var work sync.WaitGroup
	defer work.Wait()
	for ctx.Err() == nil {
		q.round(ctx, &work)
	}
}

// round starts work on all keys that are due, and waits until the next key is due or wake is
// called.
func (q *Queue) round(ctx context.Context, work *sync.WaitGroup) {
	rest, wake := context.WithCancel(ctx) // before Start, so that work that ends in between is not missed
	defer wake()
	q.WakeBy(wake)
	if next := q.Start(ctx, work); !next.IsZero() {
		var cancel context.CancelFunc
		rest, cancel = context.WithDeadline(rest, next)
		defer cancel()
	}
	<-rest.Done()
}

// Start starts work on the keys that are due, in goroutines of work. It returns the time when the
// next key is due, or the zero time if no key will become due by time alone: none is waiting, or
// all workers are busy.
func (q *Queue) Start(ctx context.Context, work *sync.WaitGroup) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		now := time.Now()
		t, waited, next := q.tasks.take(now)
		if t == nil {
			return next
		}
		q.counts.waited.Observe(waited.Seconds())
		work.Go(func() { q.work(ctx, t) })
	}
}

// work calls Work for a task that was taken from the queue.
func (q *Queue) work(ctx context.Context, t *task) {
	again, err := time.Duration(0), ErrUnfinished
	defer func() {
		if p := recover(); p != nil {
			q.o.Panicked(t.key, p)
		}
		q.worked(ctx, t, again, err)
	}()
	again, err = q.o.Work(ctx, t.key)
}

// worked ends the work on a key and reports its error. Failed is called without the lock, because
// it may call methods of the queue or wait for a goroutine that does.
func (q *Queue) worked(ctx context.Context, t *task, again time.Duration, err error) {
	again = q.done(t, again, err)
	if err != nil && ctx.Err() == nil {
		q.o.Failed(t.key, again, err)
	}
}

// done ends the work on a key and returns the duration after which the key is due again, 0 for not
// at all.
func (q *Queue) done(t *task, again time.Duration, err error) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		again = min(longestPause, max(firstPause, 2*t.pause))
		t.pause = again
		q.counts.retried.Inc()
	} else {
		t.pause = 0
	}
	var at time.Time
	if again > 0 {
		at = time.Now().Add(again)
	}
	q.counts.worked.Observe(time.Since(t.begun).Seconds())
	q.tasks.done(t, at)
	q.wake()
	q.changed()
	return again
}

// Progress returns a channel that is closed when a key is added, work on a key ends, or Touch is
// called.
func (q *Queue) Progress() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.progress
}

// Touch closes the channel of Progress.
func (q *Queue) Touch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed()
}

// changed is Touch with q.mu held.
func (q *Queue) changed() {
	close(q.progress)
	q.progress = make(chan struct{})
}

// Idle reports whether no work is running and no key is due within the next five seconds.
func (q *Queue) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tasks.idle(time.Now().Add(idleAhead))
}
