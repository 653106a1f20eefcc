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

// slotTime is how long a writer may hold a slot at the head of its queue. A slower writer, for example one whose
// admission waits for a write behind it, loses the slot and competes with the others by its commit alone.
const slotTime = 2 * time.Second

// writeQueues makes the writers of one key work in turn, first come, first served, so that each sees what the one
// before it wrote. A writer leaves the queue when it has submitted its value, not when that is committed: values
// that are submitted while the store waits for its disk are committed together, as the next batch.
type writeQueues struct {
	mu sync.Mutex // guards what follows, the queues, and their batches until these are sealed
	of map[string]*writeQueue
}

// writeQueue is the queue of one key.
type writeQueue struct {
	slots  []*slot // the writer of the first one is at work
	newest *batch  // its last value is the newest one; nil: the cache shows the newest one
}

// slot is the place of a writer in the queue of its key.
type slot struct {
	queues *writeQueues
	key    string
	begun  chan struct{} // closed when the slot is the first one
	limit  *time.Timer   // set then
}

// batch is values of one key that are committed together, each made of the one before it. The writer that
// submitted the first one commits the batch.
type batch struct {
	before *batch        // the batch that the first value was made of; nil: a committed object
	first  storage.Write // Expect is set only if before is nil
	then   [][]byte
	size   int
	entry  *objectcache.Entry // of the last value, with the revision that the object had before the batch
	sealed bool               // takes no more values

	done      chan struct{} // closed when the rest is set: the cache shows the batch, or it has failed
	revisions []storage.Revision
	err       error // of the values without a revision
}

// position is a value in a batch; the zero position is none.
type position struct {
	*batch
	index int
}

// busy reports whether a write of a key is queued or being committed.
func (q *writeQueues) busy(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.of[key] != nil
}

// enter queues, and returns when the slot is the first one, or with the error of ctx.
func (q *writeQueues) enter(ctx context.Context, key string) (*slot, error) {
	s := &slot{queues: q, key: key, begun: make(chan struct{})}
	q.mu.Lock()
	if q.of == nil {
		q.of = map[string]*writeQueue{}
	}
	if q.of[key] == nil {
		q.of[key] = &writeQueue{}
	}
	l := q.of[key]
	if l.slots = append(l.slots, s); len(l.slots) == 1 {
		s.begin()
	}
	q.mu.Unlock()
	select {
	case <-s.begun:
		return s, nil
	case <-ctx.Done():
		s.leave()
		return nil, ctx.Err()
	}
}

// begin starts the time of the first slot; mu is held.
func (s *slot) begin() {
	close(s.begun)
	s.limit = time.AfterFunc(slotTime, s.leave)
}

// leave gives the slot up. It does nothing for nil and for a slot that was given up before.
func (s *slot) leave() {
	if s == nil {
		return
	}
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	s.leaveLocked()
}

// leaveLocked is leave; mu is held.
func (s *slot) leaveLocked() {
	l := s.queues.of[s.key]
	if l == nil {
		return
	}
	i := slices.Index(l.slots, s)
	if i < 0 {
		return
	}
	if s.limit != nil {
		s.limit.Stop()
	}
	l.slots = slices.Delete(l.slots, i, i+1)
	if i == 0 && len(l.slots) > 0 {
		l.slots[0].begin()
	}
	s.queues.drop(s.key)
}

// drop forgets a queue that is not in use; mu is held.
func (q *writeQueues) drop(key string) {
	if l := q.of[key]; len(l.slots) == 0 && l.newest == nil {
		delete(q.of, key)
	}
}

// first reports whether the slot is the first one; mu is held.
func (s *slot) first() bool {
	l := s.queues.of[s.key]
	return l != nil && len(l.slots) > 0 && l.slots[0] == s
}

// over reports whether the slot was given up, or is nil.
func (s *slot) over() bool {
	if s == nil {
		return true
	}
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	return !s.first()
}

// newest returns the newest value and its entry if it is not committed yet, else none. As long as the slot is
// the first one, no other value follows.
func (s *slot) newest() (position, *objectcache.Entry) {
	if s == nil {
		return position{}, nil
	}
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	l := s.queues.of[s.key]
	if !s.first() || l.newest == nil {
		return position{}, nil
	}
	return position{l.newest, len(l.newest.then)}, l.newest.entry
}

// drain waits until every submitted value is committed or has failed.
func (s *slot) drain(ctx context.Context) {
	if at, _ := s.newest(); at.batch != nil {
		_, _ = at.wait(ctx)
	}
}

// submit gives the slot up with a value made of the one at base, or of a committed object. It returns the position
// of the value, none if the slot was given up before, and whether the caller must commit the batch.
func (s *slot) submit(base position, w storage.Write, entry *objectcache.Entry) (at position, commits bool) {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	if !s.first() {
		return position{}, false
	}
	b, size := base.batch, len(w.Value)
	if b != nil && !b.sealed && len(b.then) < storage.SequenceLength-1 && b.size+size <= storage.SequenceBytes {
		b.then = append(b.then, w.Value)
	} else {
		b, commits = &batch{before: b, first: w, done: make(chan struct{})}, true
	}
	b.size += size
	b.entry = entry
	s.queues.of[s.key].newest = b
	s.leaveLocked()
	return position{b, len(b.then)}, commits
}

// seal makes a batch take no more values.
func (q *writeQueues) seal(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.sealed = true
}

// finish gives the result of a batch to its writers.
func (q *writeQueues) finish(b *batch, revisions []storage.Revision, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.sealed, b.before, b.revisions, b.err = true, nil, revisions, err
	if l := q.of[b.first.Key]; l.newest == b {
		l.newest = nil
		q.drop(b.first.Key)
	}
	close(b.done)
}

// value returns the stored object at a position.
func (at position) value() []byte {
	if at.index == 0 {
		return at.first.Value
	}
	return at.then[at.index-1]
}

// wait returns the revision of a value when it is committed. A result that is there wins over the end of ctx.
func (at position) wait(ctx context.Context) (storage.Revision, error) {
	select {
	case <-at.done:
	case <-ctx.Done():
		select {
		case <-at.done:
		default:
			return 0, ctx.Err()
		}
	}
	if at.index < len(at.revisions) {
		return at.revisions[at.index], nil
	}
	var refused *meta.Status
	if at.index > len(at.revisions) && errors.As(at.err, &refused) {
		return 0, &storage.ConflictError{Key: at.first.Key} // an earlier value of the batch was refused, not this one
	}
	return 0, at.err
}
