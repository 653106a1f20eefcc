package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The bounds of a sink's queue, which include the batch that is being written,
// and of a batch.
const (
	maxWaiting      = 10_000
	maxWaitingBytes = 16 << 20
	maxBatch        = 400
	maxBatchBytes   = 1 << 20 // a single larger event is a batch of its own
)

// closeGrace is how long close waits for Sink.Write after it cancels its context.
const closeGrace = time.Second

// Sink writes events to a destination.
//
// A single goroutine calls its methods, so they need not be safe for concurrent use.
// Write may block: requests do not wait for it, but events are dropped when the
// queue is full. Each event is JSON on a single line, without a newline at its end. All
// sinks share the encoded events, so Write must not modify them; it must not keep the
// slice events after it returns. If Write returns an error, the whole batch counts as
// lost. ctx is canceled when the context of Log.Close ends. Close is the last call.
type Sink interface {
	Write(ctx context.Context, events [][]byte) error
	Close() error
}

// queue is the bounded queue of a sink. Requests add events with put, which
// never blocks; the goroutine run writes them in batches.
type queue struct {
	sink     Sink
	state    *state
	cancel   context.CancelFunc // cancels the context of Sink.Write
	done     chan struct{}      // closed when run has returned
	closeErr error              // of Sink.Close; set before done is closed
	wake     chan struct{}      // capacity 1: signals that waiting or closed changed

	mu      sync.Mutex // guards the fields below
	waiting [][]byte
	count   int // events in waiting and in the batch that is being written
	bytes   int // their size
	closed  bool
}

func newQueue(s Sink, st *state) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &queue{sink: s, state: st, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	go q.run(ctx)
	return q
}

// The reasons why put drops an event.
var (
	errFull   = errors.New("queue is full: the sink is too slow")
	errClosed = errors.New("audit log is closed")
)

// put adds an encoded event, or counts it as lost if the queue is full or closed.
// It never blocks. The queue keeps event, which must not be modified afterwards.
func (q *queue) put(event []byte) {
	q.mu.Lock()
	var why error
	switch {
	case q.closed:
		why = errClosed
	case q.count >= maxWaiting || q.bytes+len(event) > maxWaitingBytes:
		why = errFull
	default:
		q.waiting = append(q.waiting, event)
		q.count++
		q.bytes += len(event)
	}
	q.mu.Unlock()
	if why != nil {
		q.state.lost(1, why)
		return
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes a batch from the queue and returns it and its size. The batch still
// counts toward the bounds until release. end is true if the queue is empty and
// closed.
func (q *queue) take() (batch [][]byte, bytes int, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < min(len(q.waiting), maxBatch) && (n == 0 || bytes+len(q.waiting[n]) <= maxBatchBytes) {
		bytes += len(q.waiting[n])
		n++
	}
	batch = q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	if len(q.waiting) == 0 {
		q.waiting = nil
	}
	return batch, bytes, n == 0 && q.closed
}

// release subtracts a written batch from the bounds.
func (q *queue) release(count, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count -= count
	q.bytes -= bytes
}

// run writes batches to the sink until the queue is closed and empty, and closes
// the sink.
func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	defer func() { q.closeErr = q.sink.Close() }()
	for range q.wake {
		for {
			batch, bytes, end := q.take()
			if end {
				return
			}
			if len(batch) == 0 {
				break
			}
			q.state.begin()
			q.state.end(len(batch), q.write(ctx, batch))
			clear(batch) // frees the events: waiting may share the batch's array
			q.release(len(batch), bytes)
		}
	}
}

// write calls Sink.Write and returns a panic as an error, because the sink may be
// code of the embedding program.
func (q *queue) write(ctx context.Context, batch [][]byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("sink panicked: %v", p)
		}
	}()
	return q.sink.Write(ctx, batch)
}

// close closes the queue and waits until all events are written and the sink is
// closed. When ctx ends, it cancels Sink.Write and waits up to closeGrace; if the
// sink does not return, close returns anyway. Only the first call waits.
func (q *queue) close(ctx context.Context) error {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	q.mu.Unlock()
	if again {
		return nil
	}
	q.signal()
	defer q.cancel()
	var timeout error
	select {
	case <-q.done:
	case <-ctx.Done():
		timeout = fmt.Errorf("audit: closed before all events were written: %w", ctx.Err())
		q.cancel()
		grace := time.NewTimer(closeGrace)
		defer grace.Stop()
		select {
		case <-q.done:
		case <-grace.C:
			return timeout
		}
	}
	if q.closeErr != nil {
		return fmt.Errorf("audit: %w", q.closeErr)
	}
	return timeout
}

// pause waits for d and returns true, or returns false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
