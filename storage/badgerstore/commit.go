package badgerstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// A batch is below the bounds above which the database splits it, which depend on
// its tables in memory: one failed write of two would end the process. It fills no
// more than a part of a log, so that at most one log is begun meanwhile.
const (
	batchesOfTable = 8
	batchEntry     = 128 // bytes that each entry counts beyond its key and value
)

// request is one thing that waits for the committer: the writes of one commit, in
// the order of their keys, or do.
type request struct {
	ctx    context.Context
	writes []write
	then   [][]byte // further values of the key, if it is one write
	do     func() error
	result storage.Revision
	err    error
	done   chan struct{}
	one    [1]write // room for writes
}

type write struct {
	storage.Write
	seen storage.Record // of the key when the request was made
}

// committer is what only the committing goroutine touches, and Open before and Close
// after it.
type committer struct {
	broken    error            // why nothing can be written any more
	importing bool             // no commits meanwhile
	marked    uint64           // newest version of stamps and the mark
	next      storage.Revision // of the commit to come
	live      set              // of the records that are published
	witness   *witness
	pieces    pieces
	spare     spare
	flattener *flattener
	reserve   *ballast // see keepReserve
	short     bool     // the reserve is needed
}

// Commit implements storage.Backend. The writes are on the disk when it returns.
// Several of them take one wait for the disk more than one, shared with all that is
// committed at the time.
//
// More than storage.CommitLength of them fit if the tables in memory are large, whose
// size follows that of the disk: 1 MiB on one of 64 MiB, 8 MiB from 512 MiB on. Keys,
// values and 128 bytes for each write have an eighth of a table, keys and values alone
// a tenth and 512 KiB at most, keys MaxKeyBytes; one value may be over half of the
// latter and then does not count. Writes of 100 bytes are 500 or 1,100 at most.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	ws, err := storage.Together(ws)
	if err != nil {
		return 0, err
	}
	r := &request{}
	r.writes = r.one[:0]
	for _, w := range ws {
		r.writes = append(r.writes, write{Write: w})
	}
	return s.commitAll(ctx, r)
}

// CommitSequence implements storage.Sequencer with one wait for the disk: all
// values are committed or none. More than fits into one batch is storage.ErrTooLarge.
func (s *Store) CommitSequence(ctx context.Context, first storage.Write, then ...[]byte) ([]storage.Revision, error) {
	if _, err := storage.Together([]storage.Write{first}); err != nil {
		return nil, err
	}
	r := &request{then: then}
	r.writes = append(r.one[:0], write{Write: first})
	revision, err := s.commitAll(ctx, r)
	if err != nil {
		return nil, err
	}
	revisions := make([]storage.Revision, 1+len(then))
	for i := range revisions {
		revisions[i] = revision + storage.Revision(i)
	}
	return revisions, nil
}

// commitAll returns the revision of the first value; those of the others follow it.
func (s *Store) commitAll(ctx context.Context, r *request) (storage.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := s.checkSize(r); err != nil {
		return 0, err
	}
	r.ctx, r.done = ctx, make(chan struct{})
	if err := s.prepare(r); err != nil {
		return 0, err
	}
	if err := s.submit(r); err != nil {
		return 0, err
	}
	return r.result, r.err
}

// checkSize refuses what is larger than the store can commit at once.
func (s *Store) checkSize(r *request) error {
	size, grouped, keys, inPieces := r.size(), 0, 0, 0
	for i := range r.writes {
		w := &r.writes[i]
		keys += len(w.Key)
		grouped += len(w.Key) + len(w.Value) + groupEntry
		if len(w.Value) > s.piece {
			size -= len(w.Value) // it is on the disk before the commit
			grouped -= len(w.Value)
			inPieces++
		}
		if len(w.Key) > MaxKeyBytes || len(w.Value) > MaxValueBytes {
			return fmt.Errorf("commit %.80q with %d bytes: %w", w.Key, len(w.Value), storage.ErrTooLarge)
		}
	}
	switch {
	case len(r.then) > 0 && (r.size() > s.batch || r.valueBytes() > MaxValueBytes):
	case len(r.writes) > 1 && (size > s.batch || grouped > 2*s.piece || keys > groupBytes || inPieces > 1):
	default:
		return nil
	}
	return fmt.Errorf("commit %.80q and more, %d writes of %d bytes: %w", r.writes[0].Key, len(r.writes), r.valueBytes(), storage.ErrTooLarge)
}

// valueBytes returns the length of all values.
func (r *request) valueBytes() (size int) {
	for i := range r.writes {
		size += len(r.writes[i].Value)
	}
	for _, value := range r.then {
		size += len(value)
	}
	return size
}

// size returns how much of a batch the request takes.
func (r *request) size() int {
	size := r.valueBytes()
	for i := range r.writes {
		size += (len(r.writes[i].Key) + batchEntry) * (1 + len(r.then))
	}
	return size
}

// deletes reports whether the request makes nothing larger.
func (r *request) deletes() bool {
	for i := range r.writes {
		if r.writes[i].Value != nil {
			return false
		}
	}
	return true
}

// prepare reads what the writes replace, so that the committer need not, and
// answers at once if a comparison fails already.
func (s *Store) prepare(r *request) error {
	if !s.enter() {
		return storage.ErrClosed
	}
	defer s.leave()
	for i := range r.writes {
		w := &r.writes[i]
		var err error
		if w.seen, err = s.replaceable(w.Key); err != nil {
			return err
		}
		if err := w.Check(w.seen); err != nil {
			return err
		}
	}
	return nil
}

// submit waits until the committer has handled r.
func (s *Store) submit(r *request) error {
	s.queue.Lock()
	if s.queue.closed {
		s.queue.Unlock()
		return storage.ErrClosed
	}
	s.queue.waiting = append(s.queue.waiting, r)
	s.signal()
	s.queue.Unlock()
	select {
	case <-r.done:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// signal tells the committer to look; the caller holds the queue.
func (s *Store) signal() {
	select {
	case s.queue.ready <- struct{}{}:
	default:
	}
}

// run is the committer. It ends when the store is closed and the queue empty.
func (s *Store) run() {
	defer close(s.done)
	save := func() {
		if err := s.saveAges(); err != nil {
			s.logger.Warn("storage could not save the age of its history", "dir", s.dir, "err", err)
		}
	}
	save() // what a life that did not end in order left without an age
	defer save()
	var tick <-chan time.Time
	if s.retain > 0 {
		ticker := time.NewTicker(max(s.retain/10, 10*time.Millisecond))
		defer ticker.Stop()
		tick = ticker.C
	}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case now := <-tick:
			s.expire(now)
		case <-look.C:
			s.flatten()
			s.keepReserve()
		case <-s.queue.ready:
			if s.drain() {
				return
			}
		}
		s.privacy.keep()
	}
}

// drain handles the requests that wait, and reports whether the store is closed. Further requests
// have signalled again, so that a busy queue does not keep run from its other work.
func (s *Store) drain() (closed bool) {
	s.queue.Lock()
	waiting, closed := s.queue.waiting, s.queue.closed
	s.queue.waiting = nil
	s.queue.Unlock()
	for len(waiting) > 0 {
		n := s.take(waiting)
		if waiting[0].do != nil {
			waiting[0].err = waiting[0].do()
		} else {
			s.commit(waiting[:n])
		}
		for _, r := range waiting[:n] {
			close(r.done)
		}
		waiting = waiting[n:]
	}
	return closed
}

// sizeOf returns how many bytes of the log requests take, at most.
func sizeOf(requests []*request) (size int64) {
	for _, r := range requests {
		one := r.valueBytes() * 9 / 8
		for i := range r.writes {
			one += (len(r.writes[i].Key) + 512) * (1 + len(r.then))
		}
		if len(r.writes) > 1 {
			one *= 2 // they are written twice
		}
		size += int64(one)
	}
	return size
}

// take returns how many of the first requests make one batch.
func (s *Store) take(waiting []*request) int {
	size := 0
	for i, r := range waiting {
		size += r.size()
		if i > 0 && (r.do != nil || waiting[0].do != nil || size > s.batch) {
			return i
		}
	}
	return len(waiting)
}

// commit handles writes as one batch. Their answers, also that a comparison
// failed, may rest on each other, so nobody is answered before the fsync.
func (s *Store) commit(requests []*request) {
	if s.committer.broken != nil {
		refuse(requests, s.committer.broken)
		return
	}
	if s.committer.importing {
		refuse(requests, errImporting)
		return
	}
	var full error
	if slices.ContainsFunc(requests, func(r *request) bool { return !r.deletes() }) {
		full = s.full(sizeOf(requests))
	}
	next := s.committer.next
	events := make([]storage.Event, 0, len(requests))
	pending := make(map[string]storage.Record)
	for _, r := range requests {
		if r.err = full; full != nil && !r.deletes() {
			continue
		}
		n := len(events)
		if events, r.err = s.decide(events, r, pending, next); r.err != nil {
			continue
		}
		r.result = next
		next++
		for _, value := range r.then {
			last := events[len(events)-1].Record
			events = append(events, storage.Event{Record: storage.Record{Key: last.Key, Value: value, Revision: next}, Prev: last})
			next++
		}
		for _, e := range events[n:] {
			pending[e.Key] = e.Record
		}
	}
	if len(events) == 0 {
		return
	}
	if err := s.write(events); err != nil {
		refuse(requests, err)
		return
	}
	s.stats.commits.Add(uint64(len(events)))
	s.stats.batches.Add(1)
	s.publish(events)
}

// write brings commits to the disk: pieces first, so that an entry which is
// there has all of its value, then as a whole those of several writes, then the entries.
// The revisions are used even if it fails, since pieces may be there.
func (s *Store) write(events []storage.Event) error {
	last := events[len(events)-1].Revision
	if err := s.reserve(last); err != nil {
		return s.noteReady(err)
	}
	s.committer.next = last + 1
	heads, size := make([]*badger.Entry, len(events)), 0
	var pieces []*badger.Entry
	for i, e := range events {
		size += len(e.Key) + 2*batchEntry
		if !e.Deleted() {
			head, parts := seal(e.Record, s.piece)
			heads[i], pieces = head, append(pieces, parts...)
			size += len(head.Value)
		}
	}
	err := s.flushAll(len(pieces), s.piece, func(batch *badger.WriteBatch, i int) error {
		revision, _, _ := pieceOf(pieces[i].Key)
		return batch.SetEntryAt(pieces[i], uint64(revision))
	})
	if err != nil {
		s.committer.pieces.abandon(events, s.piece)
		return err
	}
	groups, indexed := runs(events), func() {}
	puts := []func(*badger.WriteBatch) error{func(batch *badger.WriteBatch) (err error) {
		for i, head := range heads {
			at := uint64(events[i].Revision)
			if head == nil {
				err = batch.DeleteAt(recordKey(events[i].Key), at)
			} else {
				err = batch.SetEntryAt(head, at)
			}
			if err != nil {
				return err
			}
		}
		indexed, err = s.putBlocks(batch)
		return err
	}}
	if len(groups) > 0 {
		size *= 2
		puts = slices.Insert(puts, 0, func(batch *badger.WriteBatch) error {
			return putGroups(batch, groups, events, heads)
		})
	}
	if err = s.flush(size+s.blocksAtOnce()*blockBytes, puts...); err != nil {
		s.committer.pieces.abandon(events, s.piece)
		return err
	}
	indexed()
	return nil
}

// flushAll writes n entries of some size in as many batches as they need, up to
// the first that fails.
func (s *Store) flushAll(n, size int, put func(batch *badger.WriteBatch, i int) error) error {
	most := max(1, s.batch/(size+batchEntry))
	for from := 0; from < n; from += most {
		to := min(from+most, n)
		err := s.flush((to-from)*(size+batchEntry), func(batch *badger.WriteBatch) error {
			for i := from; i < to; i++ {
				if err := put(batch, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// flush writes batches of about so many bytes in all, with one wait for the disk
// each, in this order, and once it has begun all of them. All writes go through it:
// after one whose outcome nobody knows there is no other.
func (s *Store) flush(bytes int, puts ...func(batch *badger.WriteBatch) error) error {
	if s.committer.broken != nil {
		return s.committer.broken
	}
	if err := s.ready(int64(bytes)); err != nil {
		return err
	}
	for _, put := range puts {
		if err := s.flushBatch(put); err != nil {
			return s.stop(err)
		}
	}
	return nil
}

func (s *Store) flushBatch(put func(batch *badger.WriteBatch) error) error {
	batch := s.db.NewManagedWriteBatch()
	defer batch.Cancel()
	if err := put(batch); err != nil {
		return err
	}
	s.stats.fsyncs.Add(1)
	return batch.Flush()
}

func refuse(requests []*request, err error) {
	for _, r := range requests {
		r.result, r.err = 0, err
	}
}

// decide appends the events that a commit makes at the given revision.
func (s *Store) decide(events []storage.Event, r *request, pending map[string]storage.Record, next storage.Revision) ([]storage.Event, error) {
	if err := r.ctx.Err(); err != nil {
		return events, err
	}
	n := len(events)
	for i := range r.writes {
		w := &r.writes[i]
		prev, err := s.replaced(w, pending)
		if err == nil {
			err = w.Check(prev)
		}
		if err != nil {
			return events[:n], err
		}
		if w.Guard {
			continue
		}
		rec := storage.Record{Key: w.Key, Value: w.Value, Revision: next}
		events = append(events, storage.Event{Record: rec, Prev: prev})
	}
	return events, nil
}

// replaced returns the record that a write replaces after those before it in its
// batch.
func (s *Store) replaced(w *write, pending map[string]storage.Record) (storage.Record, error) {
	prev, ok := pending[w.Key]
	switch {
	case ok && prev.Value == nil:
		return storage.Record{}, nil
	case ok:
		return prev, nil
	}
	if _, of := s.newest(w.Key); of != w.seen.Revision {
		return s.replaceable(w.Key)
	}
	return w.seen, nil
}

// publish makes commits visible that are on the disk.
func (s *Store) publish(events []storage.Event) {
	s.index.add(events)
	s.state.Lock()
	for _, e := range events {
		s.committer.live.apply(e)
		s.committer.pieces.replace(e, s.piece)
		delete(s.state.damaged, e.Key)
		if e.Deleted() {
			delete(s.state.index, e.Key)
		} else {
			s.state.index[e.Key] = e.Revision
		}
	}
	s.state.revision = events[len(events)-1].Revision
	s.state.Unlock()
	_ = s.testify(false)
	now := time.Now()
	s.ages.committed(now, events[len(events)-1].Revision)
	s.log.Append(now, events...)
}

// note writes one entry that is no commit, and what more puts into the batch.
func (s *Store) note(key, value []byte, more ...func(*badger.WriteBatch) error) error {
	err := s.flush(len(key)+len(value)+2*batchEntry, func(batch *badger.WriteBatch) error {
		if err := batch.SetEntryAt(badger.NewEntry(key, value), s.committer.marked+1); err != nil {
			return err
		}
		for _, put := range more {
			if err := put(batch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.committer.marked++
	return nil
}

// mark is the value under markKey.
func mark(floor, revision storage.Revision) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, markBytes), uint64(floor))
	return binary.BigEndian.AppendUint64(b, uint64(revision))
}
