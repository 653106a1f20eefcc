// Package workqueue works on keys, one call at a time for each, again after failures.
package workqueue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of the pace.
const (
	defaultWorkers = 16
	firstPause     = 5 * time.Millisecond
	longestPause   = 30 * time.Second
	soon           = 5 * time.Second
)

// Options say what a queue does with its keys.
type Options struct {
	// Name is how metrics call the queue.
	Name string

	// Workers is how many keys are worked on at a time; zero is 16.
	Workers int

	// Work is called for a key that is due, never twice at a time for one, and says when
	// the key is due again; 0 is when it is asked for. After an error or a panic that is
	// after a pause, which grows with each.
	Work func(ctx context.Context, key string) (again time.Duration, err error)

	// Failed is told of errors of Work while the context has not ended.
	Failed func(key string, again time.Duration, err error)

	// Panicked is told of a panic of Work by the deferred function that recovered it.
	Panicked func(key string, p any)

	// Metrics is where metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
}

// ErrUnfinished is the error of a call of Work that panicked or ended its goroutine.
var ErrUnfinished = errors.New("the call did not return")

// Queue holds keys that are due, or will be.
type Queue struct {
	o      Options
	counts *counts

	mu       sync.Mutex // guards the rest
	tasks    tasks
	wake     func()        // ends the rest of who starts work
	progress chan struct{} // closed and replaced when a key comes or work on one ends
}

// New returns an empty queue. An error says which metrics are not registered. Close is
// for who has done with the queue.
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

// Close takes the queue out of the metrics that tell how it is.
func (q *Queue) Close() { q.counts.states.remove(q) }

// Ask makes keys due after some time, unless they are due before. Earlier failures do not
// count any more. Who starts work learns of it by Wake.
func (q *Queue) Ask(after time.Duration, keys ...string) {
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

// WakeBy sets what Wake calls, and the end of work on a key.
func (q *Queue) WakeBy(wake func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake = wake
}

// Wake ends the rest of who starts work.
func (q *Queue) Wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake()
}

// Run works on keys until the context ends, closes the queue, and returns when all work
// has ended.
func (q *Queue) Run(ctx context.Context) {
	defer q.Close()
	var work sync.WaitGroup
	defer work.Wait()
	for ctx.Err() == nil {
		q.round(ctx, &work)
	}
}

func (q *Queue) round(ctx context.Context, work *sync.WaitGroup) {
	rest, wake := context.WithCancel(ctx) // before all else: what ends from here on ends the rest
	defer wake()
	q.WakeBy(wake)
	if next := q.Start(ctx, work); !next.IsZero() {
		var cancel context.CancelFunc
		rest, cancel = context.WithDeadline(rest, next)
		defer cancel()
	}
	<-rest.Done()
}

// Start begins work on the keys that are due and tells when the next one is, zero if no
// time will make one so.
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

// worked ends the work on a key and says when it is due again. Failed is called without
// the lock: it is the program's, and may ask for keys or wait for who does.
func (q *Queue) worked(ctx context.Context, t *task, again time.Duration, err error) {
	again = q.done(t, again, err)
	if err != nil && ctx.Err() == nil {
		q.o.Failed(t.key, again, err)
	}
}

// done ends the work on a key and returns after how long it is due again.
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

// Progress is closed when a key comes, work on one ends, or Touch is called.
func (q *Queue) Progress() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.progress
}

// Touch wakes those who wait for Progress.
func (q *Queue) Touch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed()
}

// changed is Touch. The lock is held.
func (q *Queue) changed() {
	close(q.progress)
	q.progress = make(chan struct{})
}

// Idle reports whether nothing runs and nothing is due within five seconds.
func (q *Queue) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tasks.idle(time.Now().Add(soon))
}
