package etcdstore

import (
	"context"
	"slices"
	"sync"
)

// mostBatches is how many shared batches are under way before further commits wait.
const mostBatches = 2

// queue has the batches that wait for one that is under way.
type queue struct {
	mu       sync.Mutex
	waiting  []*batch
	underWay int
}

// join reports whether a commit is made with others. It has to be made alone if it deletes, or is large, or
// meets one of those that it would wait with.
func (q *queue) join(s *Store, c *commit) bool {
	if c.size > batchBytes || slices.ContainsFunc(c.ws, deletes) {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.underWay < mostBatches {
		q.underWay++
		b := s.newBatch(c)
		s.done.Go(func() { q.run(s.life, b) })
		return true
	}
	last := len(q.waiting) - 1
	switch {
	case last < 0 || !q.waiting[last].hasRoom(c):
		q.waiting = append(q.waiting, s.newBatch(c))
	case q.waiting[last].meets(c):
		return false
	default:
		q.waiting[last].add(c)
	}
	return true
}

// run makes a batch, and those that wait.
func (q *queue) run(ctx context.Context, b *batch) {
	for ; b != nil; b = q.next() {
		b.run(ctx)
	}
}

// next returns the next batch to be made. If there is none, one batch less is under way.
func (q *queue) next() (b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.underWay--
		return nil
	}
	b, q.waiting[0] = q.waiting[0], nil
	q.waiting = q.waiting[1:]
	return b
}
