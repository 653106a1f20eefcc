package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The bounds of what waits for one sink, that which it is taking included, and
// of what it takes at a time.
const (
	maxWaiting      = 10_000
	maxWaitingBytes = 16 << 20
	maxBatch        = 400
	maxBatchBytes   = 1 << 20
)

// parting is how long a sink may take to notice that its time is over.
const parting = time.Second

// Sink takes events, each a line of JSON without its end. It is called by one
// goroutine at a time and may take its time; ctx ends when the Log is closed
// and its patience is over. After Close it is not called again. Events that come
// with an error count as lost.
type Sink interface {
	Write(ctx context.Context, events [][]byte) error
	Close() error
}

// queue is what stands between requests and a slow sink.
type queue struct {
	sink   Sink
	state  *state
	cancel context.CancelFunc // of Write
	done   chan struct{}      // closed when the goroutine has ended
	failed error              // of closing the sink; set before done is closed

	mu      sync.Mutex // guards the rest
	waiting [][]byte
	count   int // of waiting and what the sink is taking
	bytes   int
	closed  bool
	wake    chan struct{} // holds one signal
}

func newQueue(s Sink, st *state) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &queue{sink: s, state: st, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	go q.run(ctx)
	return q
}

// What is lost without being given to a sink.
var (
	errFull   = errors.New("more events than the sink takes")
	errClosed = errors.New("the log is closed")
)

// put never blocks.
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

// take returns a batch and its bytes; end is true if there will be none any
// more.
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

// taken makes room for what comes after a batch.
func (q *queue) taken(count, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count -= count
	q.bytes -= bytes
}

func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	defer func() { q.failed = q.sink.Close() }()
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
			clear(batch) // the array behind it may still be in use
			q.taken(len(batch), bytes)
		}
	}
}

// write fails where the sink panics: it may be a program's own.
func (q *queue) write(ctx context.Context, batch [][]byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the sink panicked: %v", p)
		}
	}()
	return q.sink.Write(ctx, batch)
}

// close waits until everything is written, or the context ends and the sink has
// had a moment to notice. A sink that does not is left to itself.
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
	var late error
	select {
	case <-q.done:
	case <-ctx.Done():
		late = fmt.Errorf("audit: events were still waiting: %w", ctx.Err())
		q.cancel()
		moment := time.NewTimer(parting)
		defer moment.Stop()
		select {
		case <-q.done:
		case <-moment.C:
			return late
		}
	}
	if q.failed != nil {
		return fmt.Errorf("audit: %w", q.failed)
	}
	return late
}

// pause waits, and reports whether it was not cut short.
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
