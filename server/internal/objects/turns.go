package objects

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// turnTime is how long a writer may keep those behind it waiting. One that takes
// longer, since its admission is slow or itself waits behind it, is overtaken.
const turnTime = 2 * time.Second

// turns lets the writers of one key go one after the other, first come, first
// served, so that each sees what the one before wrote. A turn ends when its writer
// has handed over what it made, not when that is committed: what is handed over
// while the store waits for its disk is committed together, next.
type turns struct {
	mu sync.Mutex // also of the lanes and of their sequences until these are closed
	of map[string]*lane
}

// lane is a key that somebody writes.
type lane struct {
	queue  []*turn   // the first one has its turn
	newest *sequence // whose last value is the newest; nil: what the cache shows is
}

// turn is a writer's place in the queue of its key.
type turn struct {
	turns *turns
	key   string
	begun chan struct{}
	limit *time.Timer // set when it begins
}

// sequence is what is committed at once: values of one key, each made of the one
// before it. Whoever handed over the first one commits it.
type sequence struct {
	before *sequence     // that it builds on, nil if it begins with a committed object
	first  storage.Write // with Expect only if there is nothing before
	then   [][]byte
	size   int
	entry  *objectcache.Entry // of the last value; its revision is that of the object at first
	closed bool               // takes no more values

	done      chan struct{} // closed when the rest is set: the cache shows it
	revisions []storage.Revision
	err       error // of the values that have no revision
}

// place is a value in a sequence; the zero place is none.
type place struct {
	*sequence
	index int
}

// wanted reports whether anybody has the turn at a key, or is just committing it.
func (q *turns) wanted(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.of[key] != nil
}

// take queues up and waits for the turn, or for the context's end.
func (q *turns) take(ctx context.Context, key string) (*turn, error) {
	t := &turn{turns: q, key: key, begun: make(chan struct{})}
	q.mu.Lock()
	if q.of == nil {
		q.of = map[string]*lane{}
	}
	if q.of[key] == nil {
		q.of[key] = &lane{}
	}
	l := q.of[key]
	if l.queue = append(l.queue, t); len(l.queue) == 1 {
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
	t.leave()
}

// leave is end; the lock is held.
func (t *turn) leave() {
	l := t.turns.of[t.key]
	if l == nil {
		return
	}
	i := slices.Index(l.queue, t)
	if i < 0 {
		return
	}
	if t.limit != nil {
		t.limit.Stop()
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	if i == 0 && len(l.queue) > 0 {
		l.queue[0].begin()
	}
	t.turns.drop(t.key)
}

// drop forgets a lane that nobody uses; the lock is held.
func (q *turns) drop(key string) {
	if l := q.of[key]; len(l.queue) == 0 && l.newest == nil {
		delete(q.of, key)
	}
}

// has reports whether it is this one's turn; the lock is held.
func (t *turn) has() bool {
	l := t.turns.of[t.key]
	return l != nil && len(l.queue) > 0 && l.queue[0] == t
}

// over reports whether the turn has ended, or never began.
func (t *turn) over() bool {
	if t == nil {
		return true
	}
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	return !t.has()
}

// newest returns the newest value and its entry if it is not committed yet, else
// none. While the turn lasts no other one comes.
func (t *turn) newest() (place, *objectcache.Entry) {
	if t == nil {
		return place{}, nil
	}
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	l := t.turns.of[t.key]
	if !t.has() || l.newest == nil {
		return place{}, nil
	}
	return place{l.newest, len(l.newest.then)}, l.newest.entry
}

// settle waits until everything that was handed over is committed, or has failed.
func (t *turn) settle(ctx context.Context) {
	if at, _ := t.newest(); at.sequence != nil {
		_, _ = at.wait(ctx)
	}
}

// handOver ends the turn with a value made of another one, or of a committed
// object. It returns the value's place, which is none if the turn is over, and
// whether the caller must commit its sequence.
func (t *turn) handOver(on place, w storage.Write, entry *objectcache.Entry) (at place, commits bool) {
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	if !t.has() {
		return place{}, false
	}
	q, size := on.sequence, len(w.Value)
	if q != nil && !q.closed && len(q.then) < storage.SequenceLength-1 && q.size+size <= storage.SequenceBytes {
		q.then = append(q.then, w.Value)
	} else {
		q, commits = &sequence{before: q, first: w, done: make(chan struct{})}, true
	}
	q.size += size
	q.entry = entry
	t.turns.of[t.key].newest = q
	t.leave()
	return place{q, len(q.then)}, commits
}

// close lets the sequence take no more values.
func (q *turns) close(s *sequence) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.closed = true
}

// finish tells all who wait what became of a sequence.
func (q *turns) finish(s *sequence, revisions []storage.Revision, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.closed, s.before, s.revisions, s.err = true, nil, revisions, err
	if l := q.of[s.first.Key]; l.newest == s {
		l.newest = nil
		q.drop(s.first.Key)
	}
	close(s.done)
}

// value returns the stored object there.
func (at place) value() []byte {
	if at.index == 0 {
		return at.first.Value
	}
	return at.then[at.index-1]
}

// wait returns the revision of a value when it is committed.
func (at place) wait(ctx context.Context) (storage.Revision, error) {
	select {
	case <-at.done:
	case <-ctx.Done():
		select {
		case <-at.done: // what is decided is told
		default:
			return 0, ctx.Err()
		}
	}
	if at.index < len(at.revisions) {
		return at.revisions[at.index], nil
	}
	var refused *meta.Status
	if at.index > len(at.revisions) && errors.As(at.err, &refused) {
		return 0, &storage.ConflictError{Key: at.first.Key} // that is said of the value before
	}
	return 0, at.err
}

// inTurn marks the context of a writer that has a turn. What it writes in turn,
// such as from its admission, waits for nobody: so no two wait for each other.
type inTurn struct{}

func hasTurn(ctx context.Context) bool { return ctx.Value(inTurn{}) != nil }
