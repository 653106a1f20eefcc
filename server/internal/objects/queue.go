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

// slotTime is how long a writer may hold the slot at the head of its queue. A slower writer loses the slot and
// competes with the other writers only by its commit. An example is a writer whose admission waits for a write that
// queues behind it.
const slotTime = 2 * time.Second

// writeQueues makes the writers of one key work one after the other, in the order of their arrival, so that each sees
// the value of the writer before it. A writer leaves the queue when it has submitted its value, not when the value is
// committed: values that are submitted while the store waits for its disk are committed together, as the next batch.
type writeQueues struct {
	mu sync.Mutex             // guards of, all queues, and each batch until it is sealed
	of map[string]*writeQueue // by storage key
}

// writeQueue is the queue of one key.
type writeQueue struct {
	slots  []*slot // in order; the writer with the first slot works, the others wait
	newest *batch  // its last value is the newest value of the key; nil: the cache shows the newest value
}

// slot is the position of a writer in the queue of its key.
type slot struct {
	queues *writeQueues
	key    string
	begun  chan struct{} // closed when the slot becomes the first
	limit  *time.Timer   // ends the slot after slotTime; set when the slot becomes the first
}

// batch is a sequence of values of one key that are committed together. Each value was made from the one before it.
// The writer that submitted the first value commits the batch.
//
// writeQueues.mu guards then, size, entry and sealed; then does not change after the batch is sealed. Only the
// committing writer changes before and first. revisions and err may be read after done is closed.
type batch struct {
	before *batch             // first was made from its last value; nil: first was made from a committed object
	first  storage.Write      // Expect is set only if before is nil
	then   [][]byte           // the values after the first
	size   int                // of all values, in bytes
	entry  *objectcache.Entry // of the last value, with the revision of the object before the batch
	sealed bool               // takes no more values

	done      chan struct{}      // closed after the cache shows the batch or it has failed, when revisions and err are set
	revisions []storage.Revision // of the committed values, in order
	err       error              // for the values without a revision
}

// position identifies a value in a batch. The zero position identifies none.
type position struct {
	*batch
	index int
}

// busy reports whether a write of a key is queued or is being committed.
func (q *writeQueues) busy(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.of[key] != nil
}

// enter adds a slot to the queue of a key and waits until it is the first. If ctx ends before, enter returns its
// error.
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

// begin wakes the writer of the first slot and starts its time limit. The caller holds mu.
func (s *slot) begin() {
	close(s.begun)
	s.limit = time.AfterFunc(slotTime, s.leave)
}

// leave removes the slot from its queue. It does nothing if s is nil or has already left.
func (s *slot) leave() {
	if s == nil {
		return
	}
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	s.leaveLocked()
}

// leaveLocked is leave. The caller holds mu.
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

// drop removes the queue of a key from the map if it is not in use. The caller holds mu.
func (q *writeQueues) drop(key string) {
	if l := q.of[key]; len(l.slots) == 0 && l.newest == nil {
		delete(q.of, key)
	}
}

// first reports whether the slot is the first of its queue. The caller holds mu.
func (s *slot) first() bool {
	l := s.queues.of[s.key]
	return l != nil && len(l.slots) > 0 && l.slots[0] == s
}

// released reports whether s is nil, has left its queue, or lost its place because slotTime passed.
func (s *slot) released() bool {
	if s == nil {
		return true
	}
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	return !s.first()
}

// newest returns the newest value of the key and its entry if that value is not committed yet, and zero values
// otherwise. No newer value can be submitted as long as the slot is the first.
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

// drain waits until every submitted value of the key is committed or has failed.
func (s *slot) drain(ctx context.Context) {
	if at, _ := s.newest(); at.batch != nil {
		_, _ = at.wait(ctx)
	}
}

// submit adds a value, made from the value at base or from a committed object, to the newest batch or a new batch,
// and leaves the queue. It returns the position of the value, and whether the caller must commit the batch. The
// position is zero if the slot was released before.
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

// seal closes a batch for further values.
func (q *writeQueues) seal(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.sealed = true
}

// finish sets the result of a batch and wakes its writers.
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

// value returns the value at a position, encoded for the backend. It may be called after done is closed.
func (at position) value() []byte {
	if at.index == 0 {
		return at.first.Value
	}
	return at.then[at.index-1]
}

// wait waits until a value is committed and returns its revision. If the result is known, it is returned even if ctx
// has ended.
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
