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

// A batch is smaller than the size at which Badger splits it, which depends on the size of the memtable.
// If Badger split a batch and one part failed, it would end the process. A batch also fills only a
// part of a log, so at most one new log is started while it is written.
const (
	batchesOfTable = 8   // a batch has at most this fraction of a memtable
	batchEntry     = 128 // bytes that each entry counts in addition to its key and value
)

// request is a task for the committer: either the writes of a commit, sorted by key, or the function do.
type request struct {
	ctx    context.Context
	writes []write
	then   [][]byte // later values of the key of a single write, see CommitSequence
	do     func() error
	result storage.Revision // set before done is closed, as is err
	err    error
	done   chan struct{}
	buf    [1]write // backing array of a single write, to save an allocation
}

type write struct {
	storage.Write
	seen storage.Record // record of the key when the request was created
}

// committer is the state of the committer goroutine. Only that goroutine uses it, except Open before it
// starts and Close after it has ended.
type committer struct {
	broken    error            // the error of stop; nil while writes are accepted
	importing bool             // an import is running, so commits fail
	marked    uint64           // newest version of stamps, the mark and other metadata
	next      storage.Revision // revision of the next commit
	live      set              // the published records
	witness   *witness
	pieces    pieces
	logs      logAllocator
	flattener *flattener
	ballast   *ballast // nil if it was released, see maintainBallast
	lowSpace  bool     // the disk was short of space at the last check, so the ballast may be released
}

// Commit implements storage.Backend. The writes are on the disk when it returns. A commit of several
// writes needs two fsyncs instead of one; concurrent commits share them.
//
// Commit accepts more than storage.CommitLength writes if the memtable is large. The size of the memtable
// depends on the size of the disk: 1 MiB on a disk of 64 MiB, up to 8 MiB from 512 MiB on. The limits of
// a commit of several writes are:
//
//   - keys, values and 128 bytes for each write: an eighth of the memtable
//   - keys, values and 32 bytes for each write: a tenth of the memtable, at most 512 KiB
//   - keys: MaxKeyBytes
//
// One value may be larger than half of the second limit; it does not count then. The maximum for writes
// of 100 bytes is between 500 and 1,100 writes.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	ws, err := storage.NormalizeCommit(ws)
	if err != nil {
		return 0, err
	}
	r := &request{}
	r.writes = r.buf[:0]
	for _, w := range ws {
		r.writes = append(r.writes, write{Write: w})
	}
	return s.commitAll(ctx, r)
}

// CommitSequence implements storage.Sequencer with one fsync. Either all values are committed or none. It
// fails with storage.ErrTooLarge if the values do not fit into one batch.
func (s *Store) CommitSequence(ctx context.Context, first storage.Write, then ...[]byte) ([]storage.Revision, error) {
	if _, err := storage.NormalizeCommit([]storage.Write{first}); err != nil {
		return nil, err
	}
	r := &request{then: then}
	r.writes = append(r.buf[:0], write{Write: first})
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

// commitAll submits r and returns the revision of its first value. Later values have the following
// revisions.
func (s *Store) commitAll(ctx context.Context, r *request) (storage.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := s.checkSize(r); err != nil {
		return 0, err
	}
	r.ctx, r.done = ctx, make(chan struct{})
	if err := s.readCurrent(r); err != nil {
		return 0, err
	}
	if err := s.submit(r); err != nil {
		return 0, err
	}
	return r.result, r.err
}

// checkSize returns storage.ErrTooLarge if r exceeds a limit of Commit or CommitSequence.
func (s *Store) checkSize(r *request) error {
	size, grouped, keys, inPieces := r.size(), 0, 0, 0
	for i := range r.writes {
		w := &r.writes[i]
		keys += len(w.Key)
		grouped += len(w.Key) + len(w.Value) + groupEntry
		if len(w.Value) > s.piece {
			size -= len(w.Value) // its pieces are written before the batch
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
	return fmt.Errorf("commit of %[2]d writes with %[3]d bytes, first key %.80[1]q: %[4]w", r.writes[0].Key, len(r.writes), r.valueBytes(), storage.ErrTooLarge)
}

// valueBytes returns the total length of the values.
func (r *request) valueBytes() (size int) {
	for i := range r.writes {
		size += len(r.writes[i].Value)
	}
	for _, value := range r.then {
		size += len(value)
	}
	return size
}

// size returns the number of bytes that the request counts in a batch.
func (r *request) size() int {
	size := r.valueBytes()
	for i := range r.writes {
		size += (len(r.writes[i].Key) + batchEntry) * (1 + len(r.then))
	}
	return size
}

// deletes reports whether the request writes no values, so that it is accepted on a full disk.
func (r *request) deletes() bool {
	for i := range r.writes {
		if r.writes[i].Value != nil {
			return false
		}
	}
	return true
}

// readCurrent reads the current records of the keys of r, so that the committer need not read them unless
// they change. It returns an error if a comparison fails already.
func (s *Store) readCurrent(r *request) error {
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

// submit puts r into the queue and waits until the committer has handled it or the context of r ends. r.result
// and r.err are valid only if submit returns nil.
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

// signal wakes the committer. The caller holds the lock of the queue.
func (s *Store) signal() {
	select {
	case s.queue.ready <- struct{}{}:
	default:
	}
}

// run is the committer goroutine. It ends when the store is closed and the queue is empty.
func (s *Store) run() {
	defer close(s.done)
	save := func() {
		if err := s.saveAges(); err != nil {
			s.logger.Warn("storage failed to save the times of its commits", "dir", s.dir, "err", err)
		}
	}
	save() // for commits with times that were not saved because the last process did not close the store
	defer save()
	var tick <-chan time.Time
	if s.retain > 0 {
		ticker := time.NewTicker(max(s.retain/10, 10*time.Millisecond))
		defer ticker.Stop()
		tick = ticker.C
	}
	upkeep := time.NewTicker(time.Second)
	defer upkeep.Stop()
	for {
		select {
		case now := <-tick:
			s.expire(now)
		case <-upkeep.C:
			s.flatten()
			s.maintainBallast()
		case <-s.queue.ready:
			if s.drain() {
				return
			}
		}
		s.privacy.protect()
	}
}

// drain handles the requests that are waiting now and reports whether the store is closed. Requests that
// arrive later signal again, so run gets to its other tasks even if the queue is never empty.
func (s *Store) drain() (closed bool) {
	s.queue.Lock()
	waiting, closed := s.queue.waiting, s.queue.closed
	s.queue.waiting = nil
	s.queue.Unlock()
	for len(waiting) > 0 {
		n := s.batchLength(waiting)
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

// sizeOf returns the maximum number of log bytes that requests take.
func sizeOf(requests []*request) (size int64) {
	for _, r := range requests {
		n := r.valueBytes() * 9 / 8
		for i := range r.writes {
			n += (len(r.writes[i].Key) + 512) * (1 + len(r.then))
		}
		if len(r.writes) > 1 {
			n *= 2 // written twice, see putGroups
		}
		size += int64(n)
	}
	return size
}

// batchLength returns the number of leading requests that form one batch.
func (s *Store) batchLength(waiting []*request) int {
	size := 0
	for i, r := range waiting {
		size += r.size()
		if i > 0 && (r.do != nil || waiting[0].do != nil || size > s.batch) {
			return i
		}
	}
	return len(waiting)
}

// commit handles the writes of requests as one batch. The outcome of a request, even a failed comparison,
// may depend on earlier requests of the batch, so no request is answered before the fsync.
func (s *Store) commit(requests []*request) {
	if s.committer.broken != nil {
		failAll(requests, s.committer.broken)
		return
	}
	if s.committer.importing {
		failAll(requests, errImporting)
		return
	}
	var full error
	if slices.ContainsFunc(requests, func(r *request) bool { return !r.deletes() }) {
		full = s.checkFull(sizeOf(requests))
	}
	next := s.committer.next
	events := make([]storage.Event, 0, len(requests))
	pending := make(map[string]storage.Record)
	for _, r := range requests {
		if r.err = full; full != nil && !r.deletes() {
			continue
		}
		n := len(events)
		if events, r.err = s.appendEvents(events, r, pending, next); r.err != nil {
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
		failAll(requests, err)
		return
	}
	s.stats.commits.Add(uint64(len(events)))
	s.stats.batches.Add(1)
	s.publish(events)
}

// write writes commits to the disk in this order: the pieces of large values, so that an entry on the disk
// has its whole value; the entries that hold a whole commit of several writes; the entries of the
// writes. The revisions count as used even if write fails, because pieces may be on the disk.
func (s *Store) write(events []storage.Event) error {
	last := events[len(events)-1].Revision
	if err := s.reserveRevisions(last); err != nil {
		return s.setWritable(err)
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

// flushAll writes n entries of the given size in as many batches as needed. It stops at the first batch
// that fails.
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

// flush writes batches in order, with one fsync for each. bytes is their approximate total size. If there
// is not enough space, flush writes none of them. If a batch fails, the content of the disk is unknown,
// so flush stops the store. All writes to the database go through flush.
func (s *Store) flush(bytes int, puts ...func(batch *badger.WriteBatch) error) error {
	if s.committer.broken != nil {
		return s.committer.broken
	}
	if err := s.admitBatch(int64(bytes)); err != nil {
		return err
	}
	for _, put := range puts {
		if err := s.flushBatch(put); err != nil {
			return s.stop(err)
		}
	}
	return nil
}

// flushBatch writes the entries that put adds to a batch, and waits for the disk.
func (s *Store) flushBatch(put func(batch *badger.WriteBatch) error) error {
	batch := s.db.NewManagedWriteBatch()
	defer batch.Cancel()
	if err := put(batch); err != nil {
		return err
	}
	s.stats.fsyncs.Add(1)
	return batch.Flush()
}

// failAll sets the error of all requests.
func failAll(requests []*request, err error) {
	for _, r := range requests {
		r.result, r.err = 0, err
	}
}

// appendEvents appends the events of r, with the revision next, to events. pending holds the records that
// earlier requests of the batch write. If a comparison fails, it returns events unchanged and the error.
func (s *Store) appendEvents(events []storage.Event, r *request, pending map[string]storage.Record, next storage.Revision) ([]storage.Event, error) {
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

// replaced returns the record that w replaces. pending holds the records that earlier requests of the batch
// write.
func (s *Store) replaced(w *write, pending map[string]storage.Record) (storage.Record, error) {
	prev, ok := pending[w.Key]
	switch {
	case ok && prev.Value == nil:
		return storage.Record{}, nil
	case ok:
		return prev, nil
	}
	if _, ofKey := s.newest(w.Key); ofKey != w.seen.Revision {
		return s.replaceable(w.Key)
	}
	return w.seen, nil
}

// publish makes commits visible that are on the disk. See Store for the order.
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
	_ = s.updateWitness(false)
	now := time.Now()
	s.ages.committed(now, events[len(events)-1].Revision)
	s.log.Append(now, events...)
}

// writeMeta writes an entry of metadata, which belongs to no commit, in one batch with the entries that the
// functions more add.
func (s *Store) writeMeta(key, value []byte, more ...func(*badger.WriteBatch) error) error {
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

// mark returns the value of markKey.
func mark(floor, revision storage.Revision) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, markBytes), uint64(floor))
	return binary.BigEndian.AppendUint64(b, uint64(revision))
}
