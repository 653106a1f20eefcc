package audit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of what waits for one sink.
const (
	maxWaiting      = 10_000
	maxWaitingBytes = 32 << 20
	maxBatch        = 400
)

// Sink takes events, each a line of JSON without its end. It is called by one
// goroutine at a time and may take its time; ctx ends when the Log is closed
// and its patience is over. After Close it is not called again.
type Sink interface {
	Write(ctx context.Context, events [][]byte) error
	Close() error
}

// queue is what stands between requests and a slow sink.
type queue struct {
	sink    Sink
	dropped atomic.Uint64
	cancel  context.CancelFunc // of Write
	done    chan struct{}      // closed when the goroutine has ended

	mu      sync.Mutex // guards the rest
	waiting [][]byte
	bytes   int
	closed  bool
	wake    chan struct{} // holds one signal
}

func newQueue(s Sink) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &queue{sink: s, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	go q.run(ctx)
	return q
}

// put never blocks.
func (q *queue) put(event []byte) {
	q.mu.Lock()
	if q.closed || len(q.waiting) >= maxWaiting || q.bytes+len(event) > maxWaitingBytes {
		q.mu.Unlock()
		q.dropped.Add(1)
		return
	}
	q.waiting = append(q.waiting, event)
	q.bytes += len(event)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes a batch; end is true if there will be none any more.
func (q *queue) take() (batch [][]byte, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxBatch)
	batch = q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	if len(q.waiting) == 0 {
		q.waiting = nil
	}
	for _, e := range batch {
		q.bytes -= len(e)
	}
	return batch, n == 0 && q.closed
}

func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	for range q.wake {
		for {
			batch, end := q.take()
			if end {
				return
			}
			if len(batch) == 0 {
				break
			}
			if err := q.write(ctx, batch); err != nil {
				q.dropped.Add(uint64(len(batch)))
			}
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

func (q *queue) close(ctx context.Context) error {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	q.mu.Unlock()
	if again {
		return nil
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	var late error
	select {
	case <-q.done:
	case <-ctx.Done():
		late = fmt.Errorf("audit: events were still waiting: %w", ctx.Err())
		q.cancel()
		<-q.done
	}
	q.cancel()
	if err := q.sink.Close(); err != nil {
		return fmt.Errorf("audit: %w", err)
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
