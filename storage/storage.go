// Package storage defines the interface between a control plane and its store: an ordered map from
// keys to byte values, in which every commit gets a revision from one increasing sequence. The
// package knows nothing of kinds, JSON or HTTP.
//
// Backend is the interface that every store implements. The smaller interfaces, such as Stamper,
// Checker and Importer, are optional: a caller finds them with a type assertion. A store that wraps
// another store must forward the optional interfaces that it wants to keep.
//
// Package storagetest holds the conformance tests for implementations of Backend.
package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Revision is the number of a commit. Each store has its own sequence, which may have gaps. It never
// decreases, not even after a restart or a crash. The resourceVersion of an object is the revision
// of the commit that last wrote it. Zero is not the revision of any commit: it means "no record" in
// a comparison and "newest" in a read.
type Revision int64

// AnyRevision, as the value of Write.Expect, skips the comparison.
const AnyRevision Revision = -1

// Record is the value of a key and the revision of the commit that wrote it. Value is shared with
// the store and must not be modified.
type Record struct {
	Key      string
	Value    []byte
	Revision Revision // of the commit that wrote Value
}

// Write is a compare-and-swap of one key. It succeeds only if the current record of the key has the
// revision Expect. If Expect is 0, the key must not exist. If Expect is AnyRevision, the write
// succeeds in either case. The store keeps Value, so the caller must not modify it after Commit.
type Write struct {
	Key    string
	Value  []byte // nil deletes the key
	Expect Revision

	// Guard makes the write a comparison only: the commit fails unless Key has the revision Expect,
	// but does not write Key. Value must be nil, and Expect must not be AnyRevision.
	Guard bool
}

// Check returns the error with which Commit must reject the write, or nil, if current is the current
// record of the key. The zero Record means that the key does not exist. Check is for implementations
// of Backend.
func (w Write) Check(current Record) error {
	if w.Expect != AnyRevision && w.Expect != current.Revision {
		return &ConflictError{Key: w.Key, Expect: w.Expect, Current: current}
	}
	if w.Value == nil && current.Revision == 0 && !w.Guard {
		return ErrNotFound
	}
	return nil
}

// Every Backend accepts a commit of up to CommitLength writes whose keys and values, without the
// largest value, have up to CommitBytes bytes in total. A portable caller splits larger changes into
// several commits, even if its store accepts more. CommitLength follows from etcd's default limit of
// 128 operations in a transaction, some of which the store needs for itself.
const (
	CommitLength = 120
	CommitBytes  = 32 << 10
)

// NormalizeCommit checks that ws is a valid commit and returns the writes in byte order of their keys. It
// fails with ErrInvalidCommit if ws has two writes of one key, or nothing but guards, or a guard with a
// value or with AnyRevision. It does not modify ws, but the result may be ws itself. NormalizeCommit is
// for implementations of Backend.
func NormalizeCommit(ws []Write) ([]Write, error) {
	written := 0
	for _, w := range ws {
		switch {
		case !w.Guard:
			written++
		case w.Value != nil || w.Expect == AnyRevision:
			return nil, fmt.Errorf("%w: the guard of key %.80q needs a nil value and a revision to compare", ErrInvalidCommit, w.Key)
		}
	}
	if written == 0 {
		return nil, fmt.Errorf("%w: it writes no key", ErrInvalidCommit)
	}
	if len(ws) == 1 {
		return ws, nil
	}
	ws = slices.Clone(ws)
	slices.SortFunc(ws, func(a, b Write) int { return strings.Compare(a.Key, b.Key) })
	for i := range ws[1:] {
		if ws[i].Key == ws[i+1].Key {
			return nil, fmt.Errorf("%w: duplicate key %.80q", ErrInvalidCommit, ws[i].Key)
		}
	}
	return ws, nil
}

// Event is the effect of a commit on one key. Record.Value is nil if the commit deleted the key or if
// the record is damaged. Prev is the record that the commit replaced; its zero value means that the
// key did not exist.
type Event struct {
	Record
	Prev    Record
	Damaged *DamagedError // why the record cannot be read; nil if it can
}

// Deleted reports whether the commit deleted the key.
func (e Event) Deleted() bool { return e.Value == nil && e.Damaged == nil }

// Backend is a store. All methods are safe for concurrent use, return when the context ends, and fail
// with ErrClosed after Close.
//
// The retained history is the range of revisions, up to the newest revision, at which Get and Scan can read
// and after which Watch can begin. Compact drops the older part of it. A store that also drops
// history by age follows the rule of Retention.
type Backend interface {
	// Get returns the record of key as of revision at. If at is 0, it returns the newest record, and
	// the read is linearizable: it sees every commit that was acknowledged before the call. It fails
	// with ErrNotFound if the key did not exist at that revision, with ErrCompacted if at is before
	// the retained history, and with ErrFuture if at is after the newest commit. If the record exists
	// but cannot be read, Get fails with a *DamagedError; it never returns an empty or an older record
	// instead.
	Get(ctx context.Context, key string, at Revision) (Record, error)

	// Scan returns the records whose keys begin with prefix, in byte order of their keys, as of
	// revision at, and the revision that was read. If at is 0, Scan reads the newest revision, and the
	// read is linearizable. If start is not empty, Scan skips the keys before it. All records are of
	// that one revision, however long the caller takes to consume them. If the revision is compacted
	// during the scan, the sequence either completes or yields ErrCompacted.
	//
	// The errors are those of Get except ErrNotFound. An error ends the sequence, except a
	// *DamagedError: it is yielded with a record that has only Key and Revision, and the sequence goes
	// on. The sequence can be iterated over once.
	Scan(ctx context.Context, prefix, start string, at Revision) (Revision, iter.Seq2[Record, error], error)

	// Commit applies writes of different keys atomically, even if the process crashes, and returns
	// the revision of the commit. All writes get that one revision, which is larger than every
	// revision that the store returned before. The writes become visible to Get, Scan and Revision at
	// the same moment, and they are visible and durable (in the sense of the store) when Commit
	// returns.
	//
	// If a comparison fails, nothing is written, and the error is a *ConflictError for the first such
	// key in byte order. Deleting a key that does not exist fails with ErrNotFound if Expect is
	// AnyRevision or 0. A commit without writes, a commit of guards only, and two writes of one key fail
	// with ErrInvalidCommit. Every store accepts CommitLength writes of CommitBytes bytes; if a commit is
	// larger than the store accepts, nothing is written, and the error is ErrTooLarge. After any other
	// error, including the error of the context, the commit may or may not have happened.
	//
	// A damaged record can be replaced and deleted like any other record.
	Commit(ctx context.Context, ws ...Write) (Revision, error)

	// Watch yields each commit that has a revision larger than after and wrote a key with the prefix,
	// exactly once and in revision order, until the context ends or the consumer stops. Then the
	// sequence ends without an error. Each element of the sequence is one commit: its events for keys
	// with the prefix, at least one, in byte order of their keys. The consumer may keep the slice but
	// must not modify it.
	//
	// If after is before the retained history, Watch yields only ErrCompacted. If after is in the
	// future, Watch waits and yields only commits with a larger revision. A consumer that falls behind
	// the retained history gets ErrCompacted, which ends the sequence; a slow consumer never delays
	// Commit or other watches. Watch yields a commit only when the commit is durable.
	//
	// If a part of the history cannot be read, Watch yields ErrCompacted. If only the value that a
	// commit wrote cannot be read, it yields an event with Damaged set. If the replaced record is
	// damaged, Event.Prev has no value.
	Watch(ctx context.Context, prefix string, after Revision) iter.Seq2[[]Event, error]

	// Revision returns the newest committed revision. It is linearizable: the result is at least the
	// revision of every commit that was acknowledged before the call.
	Revision(ctx context.Context) (Revision, error)

	// Compact drops the history before the given revision: reads and watches at or after it still
	// work, older ones fail with ErrCompacted. Compact returns nil if that history was dropped before,
	// and ErrFuture if the revision is in the future.
	Compact(ctx context.Context, before Revision) error

	// Close ends watches, waits for running calls and releases the resources of the store. A second
	// Close returns nil.
	Close() error
}

// Stamper is implemented by stores that can keep small values about the store itself, called stamps,
// outside the keys and the revision sequence. The naming profile of the store is an example.
type Stamper interface {
	// Stamp stores value under name unless the name has a value already, and returns the value that
	// the name has then. The value of a name never changes.
	Stamp(ctx context.Context, name, value string) (string, error)
}

// HistoryReader is implemented by stores that can read a bounded range of their history. With any other
// store, a caller starts a watch and stops it early, which costs more.
type HistoryReader interface {
	// History yields the commits of Watch(ctx, prefix, after) up to and including the revision last,
	// which must have been committed, and ends.
	History(ctx context.Context, prefix string, after, last Revision) iter.Seq2[[]Event, error]
}

// Every Sequencer accepts a sequence of up to SequenceLength values with up to SequenceBytes bytes in
// total.
const (
	SequenceLength = 32
	SequenceBytes  = 64 << 10
)

// Sequencer is implemented by stores that can commit several successive values of one key faster in
// one call than in one call each, because they wait for the disk only once.
type Sequencer interface {
	// CommitSequence commits first as Commit does, and then each value of then to the same key,
	// replacing the value before it. Each value is a commit of its own, which Watch yields. No value
	// may be nil. CommitSequence returns the revisions of the successful commits. If a commit fails,
	// the later values are not committed, and the error is an error of Commit. Every
	// store accepts SequenceLength values with SequenceBytes bytes in total.
	CommitSequence(ctx context.Context, first Write, then ...[]byte) ([]Revision, error)
}

// CommitSequence calls the CommitSequence method of b if b is a Sequencer. Otherwise it makes the
// commits separately.
func CommitSequence(ctx context.Context, b Backend, first Write, then ...[]byte) ([]Revision, error) {
	if s, ok := b.(Sequencer); ok && len(then) > 0 {
		return s.CommitSequence(ctx, first, then...)
	}
	revisions := make([]Revision, 0, 1+len(then))
	for w := first; ; {
		revision, err := b.Commit(ctx, w)
		if err != nil {
			return revisions, err
		}
		if revisions = append(revisions, revision); len(revisions) > len(then) {
			return revisions, nil
		}
		w.Value, w.Expect = then[len(revisions)-1], revision
	}
}

// Checker is implemented by stores that detect lost or damaged data, or files that other users can read.
type Checker interface {
	// Check returns nil if the store has every commit that it ever acknowledged and other users
	// cannot read its files. Otherwise the error describes the problem and its remedy. Check is fast
	// but may access the disk.
	Check(ctx context.Context) error
	// Missing returns the number of damaged records and how many times the store found that it had
	// lost commits.
	Missing() (damaged, losses int)
}

// Shared is implemented by stores that several processes may write to at the same time. Servers that
// use such a store elect a leader for work that only one of them may do. A store that does not
// implement Shared is used by one process.
type Shared interface {
	// Shared reports whether other processes may write to the store.
	Shared() bool
}

// Writer is implemented by stores that may be readable while they do not accept writes.
type Writer interface {
	// Writable returns nil if the store accepts writes or only lacks space (ErrFull), and otherwise
	// the reason why it does not. ErrStopped lasts until the store is opened again; any other error
	// lasts until its cause is gone. Writable is cheap enough for every health check: a store on the
	// network queries its servers at most every few seconds.
	Writable(ctx context.Context) error
}

// Sizer is implemented by stores that can report their size on disk.
type Sizer interface {
	// Size returns the number of bytes that the store takes on its disk, or 0 if the size is unknown.
	// It is fast but may access the disk.
	Size() int64
}

// DamagedError is returned for a record that cannot be read: its stored value is not the value that
// was written.
type DamagedError struct {
	Key      string
	Revision Revision // of the commit that wrote it
	Err      error    // the cause
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("record %q of revision %d is damaged: %v", e.Key, e.Revision, e.Err)
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// UnavailableError is returned while a store cannot be used. The server answers 503 with Kind as the
// message and logs Err.
type UnavailableError struct {
	Kind string // describes the problem without details that API clients must not see
	Err  error  // the cause
}

func (e *UnavailableError) Error() string { return e.Kind + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

var (
	// ErrNotFound is returned if the key does not exist at the requested revision.
	ErrNotFound = errors.New("key not found")
	// ErrCompacted is returned if the requested revision is older than the retained history.
	ErrCompacted = errors.New("revision is compacted")
	// ErrFuture is returned if the requested revision is newer than the newest commit.
	ErrFuture = errors.New("revision is in the future")
	// ErrInvalidCommit is returned if writes do not form a valid commit, see NormalizeCommit.
	ErrInvalidCommit = errors.New("invalid commit")
	// ErrTooLarge is returned if a key, a value or a commit is larger than the store accepts.
	ErrTooLarge = errors.New("write is too large")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("storage is closed")
	// ErrStopped is returned for every write after a write failed in such a way that the content of
	// the disk is unknown. The store accepts writes again after it was closed and opened.
	ErrStopped = errors.New("storage stopped after a failed write")
	// ErrFull is returned if the store has no space for a write. Deletions may still succeed.
	ErrFull = errors.New("storage is full")
)

// CompactedError is an ErrCompacted with the oldest revision that can still be read, for stores that
// know it.
type CompactedError struct{ Oldest Revision }

func (e *CompactedError) Error() string {
	return fmt.Sprintf("%v: the oldest readable revision is %d", ErrCompacted, e.Oldest)
}

// Is reports whether target is ErrCompacted.
func (e *CompactedError) Is(target error) bool { return target == ErrCompacted }

// ConflictError is returned if the comparison of a Write failed. Current is the current record of the
// key; its Revision is 0 if the key does not exist.
type ConflictError struct {
	Key     string
	Expect  Revision
	Current Record
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("commit %q: expected revision %d, found %d", e.Key, e.Expect, e.Current.Revision)
}
