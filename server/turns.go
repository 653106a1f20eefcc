package server

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turnTime is how long a writer may keep those behind it waiting. One that takes
// longer, since its admission is slow or itself waits behind it, is overtaken.
const turnTime = 2 * time.Second

// turns lets the writers of one key go one after the other, first come, first
// served, so that each sees what the one before wrote. Nothing is kept of keys
// that nobody waits for.
type turns struct {
	mu sync.Mutex
	of map[string][]*turn // the first one has its turn
}

// turn is a writer's place in the queue of its key.
type turn struct {
	turns *turns
	key   string
	begun chan struct{}
	limit *time.Timer // set when it begins
}

// wanted reports whether anybody has the turn at a key.
func (q *turns) wanted(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.of[key]) > 0
}

// take queues up and waits for the turn, or for the context's end.
func (q *turns) take(ctx context.Context, key string) (*turn, error) {
	t := &turn{turns: q, key: key, begun: make(chan struct{})}
	q.mu.Lock()
	if q.of == nil {
		q.of = map[string][]*turn{}
	}
	q.of[key] = append(q.of[key], t)
	if len(q.of[key]) == 1 {
		t.begin()
	}
	q.mu.Unlock()
	select {
	case <-t.begun:
		return t, nil
	case <-ctx.Done():
		t.end()
		return nil, ctx.Err()
	}
}

// begin starts the turn; the lock is held.
func (t *turn) begin() {
	close(t.begun)
	t.limit = time.AfterFunc(turnTime, t.end)
}

// end leaves the queue; the next one there has its turn. A turn that is over, or
// nil, has no end.
func (t *turn) end() {
	if t == nil {
		return
	}
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	queue := t.turns.of[t.key]
	i := slices.Index(queue, t)
	if i < 0 {
		return
	}
	if t.limit != nil {
		t.limit.Stop()
	}
	queue = slices.Delete(queue, i, i+1)
	t.turns.of[t.key] = queue
	switch {
	case len(queue) == 0:
		delete(t.turns.of, t.key)
	case i == 0:
		queue[0].begin()
	}
}

// over reports whether the turn has ended, or never began.
func (t *turn) over() bool {
	if t == nil {
		return true
	}
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	return !slices.Contains(t.turns.of[t.key], t)
}

// inTurn marks the context of a writer that has a turn. What it writes in turn,
// such as from its admission, waits for nobody: so no two wait for each other.
type inTurn struct{}

func hasTurn(ctx context.Context) bool { return ctx.Value(inTurn{}) != nil }
