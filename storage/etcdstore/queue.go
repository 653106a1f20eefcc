package etcdstore

import (
	"context"
	"slices"
	"sync"
)

// maxBatches is the number of shared batches that may run at a time; further commits wait.
const maxBatches = 2

// queue holds the shared batches that wait until another batch ends.
type queue struct {
	mu      sync.Mutex
	waiting []*batch
	running int
}

// join adds c to a shared batch, or starts a batch if fewer than maxBatches run. It reports false if c
// must have a transaction of its own: because it deletes keys, is large, or overlaps the batch that it
// would wait in.
func (q *queue) join(s *Store, c *commit) bool {
	if c.size > batchBytes || slices.ContainsFunc(c.ws, deletes) {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running < maxBatches {
		q.running++
		b := s.newBatch(c)
		s.background.Go(func() { q.run(s.lifetime, b) })
		return true
	}
	last := len(q.waiting) - 1
	switch {
	case last < 0 || !q.waiting[last].hasRoom(c):
		q.waiting = append(q.waiting, s.newBatch(c))
	case q.waiting[last].overlaps(c):
		return false
	default:
		q.waiting[last].add(c)
	}
	return true
}

// run executes b and then the waiting batches.
func (q *queue) run(ctx context.Context, b *batch) {
	for ; b != nil; b = q.next() {
		b.run(ctx)
	}
}

// next returns the next waiting batch. If there is none, it decreases the number of running batches and
// returns nil.
func (q *queue) next() (b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running--
		return nil
	}
	b, q.waiting[0] = q.waiting[0], nil
	q.waiting = q.waiting[1:]
	return b
}
