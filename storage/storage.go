// Package storage defines what a control plane asks of a store: bytes under
// keys, one increasing revision sequence, and the order of commits. It knows
// nothing of kinds, JSON or HTTP.
//
// A Backend is used by any number of goroutines at once. Package storagetest
// holds the conformance kit that every backend, also one of your own, runs.
package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Revision numbers the commits of one store, in some stores with gaps. It never decreases,
// not across restarts and not after a crash. The resourceVersion of an object
// is the revision of its last commit. Zero stands for "none" or "newest".
type Revision int64

// AnyRevision in Write.Expect skips the comparison.
const AnyRevision Revision = -1

// Record is one key at one revision. Value must not be modified.
type Record struct {
	Key      string
	Value    []byte
	Revision Revision // of the commit that wrote Value
}

// Write is one compare-and-swap. It commits only if the key's current record
// has revision Expect; Expect 0 means that the key must not exist and
// AnyRevision that it does not matter.
// The store keeps Value, so it must not be modified afterwards.
type Write struct {
	Key    string
	Value  []byte // nil deletes the key
	Expect Revision

	// Guard says that the comparison is all: nothing is written to Key, which has no
	// Value and any Expect but AnyRevision. Other writes of the commit are.
	Guard bool
}

// Check tells what Commit answers when current is the key's record; its zero
// value means that the key does not exist. It is for implementations.
func (w Write) Check(current Record) error {
	if w.Expect != AnyRevision && w.Expect != current.Revision {
		return &ConflictError{Key: w.Key, Expect: w.Expect, Current: current}
	}
	if w.Value == nil && current.Revision == 0 && !w.Guard {
		return ErrNotFound
	}
	return nil
}

// What every Backend takes in one commit: so many writes, whose keys, and whose
// values but the longest one, have so many bytes in all. Who needs more than that
// makes several commits, whatever the store at hand may take. The length is what an
// etcd takes as it is installed, 128 operations, less some for the store's own.
const (
	CommitLength = 120
	CommitBytes  = 32 << 10
)

// Together returns writes in byte order of their keys, or ErrNotTogether. It is
// for implementations; what it is given stays as it is.
func Together(ws []Write) ([]Write, error) {
	written := 0
	for _, w := range ws {
		switch {
		case !w.Guard:
			written++
		case w.Value != nil || w.Expect == AnyRevision:
			return nil, fmt.Errorf("%w: the guard %.80q writes or compares nothing", ErrNotTogether, w.Key)
		}
	}
	if written == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrNotTogether)
	}
	if len(ws) == 1 {
		return ws, nil
	}
	ws = slices.Clone(ws)
	slices.SortFunc(ws, func(a, b Write) int { return strings.Compare(a.Key, b.Key) })
	for i := range ws[1:] {
		if ws[i].Key == ws[i+1].Key {
			return nil, fmt.Errorf("%w: there are two of key %.80q", ErrNotTogether, ws[i].Key)
		}
	}
	return ws, nil
}

// Event is what a commit did to one key. Record.Value is nil if the commit deleted
// the key, or if the record cannot be read. Prev is the record that the commit
// replaced; its zero value means that the key did not exist.
type Event struct {
	Record
	Prev    Record
	Damaged *DamagedError // nil: the record can be read
}

// Deleted reports whether the commit removed the key.
func (e Event) Deleted() bool { return e.Value == nil && e.Damaged == nil }

// Backend is a store. All methods are safe for concurrent use, return when the
// context ends, and fail with ErrClosed after Close.
//
// The retained history is the states that Get and Scan can be asked for, and
// after which Watch can begin. It ends where Compact was called, and a store
// that forgets by itself does so as Retention says.
type Backend interface {
	// Get returns the record of key as of revision at, or the newest one if at
	// is 0 (linearizable: every commit that was acknowledged before the call
	// is seen). It fails with ErrNotFound if the key did not exist then, with
	// ErrCompacted if at lies before the retained history and with ErrFuture
	// if it lies after the newest commit. A record that is there but cannot be
	// read is a *DamagedError, never an empty or an older record.
	Get(ctx context.Context, key string, at Revision) (Record, error)

	// Scan returns the records whose key begins with prefix, in byte order of
	// their keys, as of revision at (0: newest, linearizable), and the revision
	// that they show. start, if not empty, skips keys before it. All records
	// belong to that one revision, however long the caller takes; a scan whose
	// revision is compacted meanwhile either completes or yields ErrCompacted.
	// Errors are those of Get but ErrNotFound, and each ends the sequence but a
	// *DamagedError: it comes with a record of key and revision alone, and the
	// other records follow. The sequence can be used once.
	Scan(ctx context.Context, prefix, start string, at Revision) (Revision, iter.Seq2[Record, error], error)

	// Commit applies writes of different keys, all or none, also if the process
	// dies meanwhile, and returns their revision, which is one for all and larger
	// than every revision returned or shown before. They are durable, in the
	// store's own sense, and visible to Get, Scan and Revision at one moment, when
	// Commit returns at the latest. If a comparison fails nothing is written and
	// the error is a *ConflictError, of the first key in byte order. Deleting a key
	// that does not exist with AnyRevision is ErrNotFound. No writes but guards, or two
	// of one key, are ErrNotTogether. After any other error, also the context's, the
	// writes may or may not have happened. A damaged record can be replaced and
	// deleted like any other. A store takes CommitLength writes of CommitBytes, and
	// maybe more; of what is too much for it nothing is written, and the error is
	// ErrTooLarge.
	Commit(ctx context.Context, ws ...Write) (Revision, error)

	// Watch yields every commit under prefix with a revision larger than after,
	// each once, in revision order, without gaps, until the context ends or the
	// consumer stops; then it ends without an error. A commit is its events under
	// prefix, at least one, in byte order of their keys; they stay as they are and
	// must not be modified. If after lies before the
	// retained history it yields ErrCompacted, and nothing else. An after in
	// the future waits and then delivers only what is larger. A consumer that
	// falls behind the retained history gets ErrCompacted and the end; it never
	// delays Commit or other watches. A watch sees a commit only when it is as
	// durable as Commit promises. History that cannot be read is compacted
	// history, or where it is only known what a commit wrote to, Event.Damaged.
	// Event.Prev of a damaged record has no value.
	Watch(ctx context.Context, prefix string, after Revision) iter.Seq2[[]Event, error]

	// Revision returns the newest committed revision. It is linearizable: at
	// least that of every commit acknowledged before the call.
	Revision(ctx context.Context) (Revision, error)

	// Compact forgets the history before the given revision: reads and watches
	// at or after it still work, older ones give ErrCompacted. Compacting at a
	// revision that was compacted already is no error, in the future ErrFuture.
	Compact(ctx context.Context, before Revision) error

	// Close ends watches, waits for running calls and frees what the store
	// holds. A second Close returns nil.
	Close() error
}

// Stamper is implemented by stores that can keep a few bytes about themselves
// outside the keys and the revision sequence, such as the naming profile they
// were filled under.
type Stamper interface {
	// Stamp stores value under name if nothing is there and returns what is
	// there now.
	Stamp(ctx context.Context, name, value string) (string, error)
}

// Historian is implemented by stores that can read a stretch of their history by
// itself. Where it is not, a watch that ends early does the same at a higher cost.
type Historian interface {
	// History yields what Watch(ctx, prefix, after) yields up to the revision
	// last, which must have been committed, and ends.
	History(ctx context.Context, prefix string, after, last Revision) iter.Seq2[[]Event, error]
}

// What every Sequencer takes at once.
const (
	SequenceLength = 32
	SequenceBytes  = 64 << 10
)

// Sequencer is implemented by stores that commit several values of one key sooner
// together than one after the other, since they wait for a disk.
type Sequencer interface {
	// CommitSequence commits first as Commit does and then further values of its
	// key, each in place of the one before. Each is a commit of its own, also for
	// Watch. It returns the revisions of those that were committed, and what Commit
	// says of the next one if that is not all. No value is nil. A store takes
	// SequenceLength values of SequenceBytes in all, and maybe more.
	CommitSequence(ctx context.Context, first Write, then ...[]byte) ([]Revision, error)
}

// CommitSequence is that of the store, or makes the commits one by one where there
// is none.
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

// Checker is implemented by stores that notice when data is lost, damaged or open to others.
type Checker interface {
	// Check returns nil if the store has everything that it ever acknowledged and
	// nobody else can read its files, else an error that says what is wrong and what to do.
	// It is quick, but may look at a disk.
	Check(ctx context.Context) error
	// Missing returns how many records cannot be read, and how many times the
	// store found that it had lost commits.
	Missing() (damaged, losses int)
}

// Shared is implemented by stores that other processes may write to at the same time, so
// that what only one of them may do has to be agreed upon. Of a store that is not Shared
// there is one user.
type Shared interface {
	// Shared reports whether it is so.
	Shared() bool
}

// Writer is implemented by stores that may be unable to write while they can be
// read.
type Writer interface {
	// Writable returns nil if the store takes writes, or lacks nothing but room.
	// An error that is ErrStopped stays until the store is opened anew, any other
	// one until its reason is gone. It is cheap enough for every health check: a store over the
	// network asks at most every few seconds.
	Writable(ctx context.Context) error
}

// Sizer is implemented by stores that know how much room they take.
type Sizer interface {
	// Size returns how many bytes the store takes where it lies, 0 if that cannot be found
	// out. It is quick, but may look at a disk.
	Size() int64
}

// DamagedError says that the record of a key cannot be read. It has another
// value than the one that was written; nobody knows which.
type DamagedError struct {
	Key      string
	Revision Revision // of the commit that wrote it
	Err      error    // what is wrong with it
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("record %q of revision %d is damaged: %v", e.Key, e.Revision, e.Err)
}

// Unwrap returns what is wrong with the record.
func (e *DamagedError) Unwrap() error { return e.Err }

// UnavailableError says that the store cannot be used just now: the server answers 503 with the
// kind, and logs the rest.
type UnavailableError struct {
	Kind string // of the trouble, in words that callers may see
	Err  error  // what is wrong
}

func (e *UnavailableError) Error() string { return e.Kind + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UnavailableError) Unwrap() error { return e.Err }

var (
	// ErrNotFound says that the key does not exist at the asked revision.
	ErrNotFound = errors.New("key not found")
	// ErrCompacted says that the asked revision is older than the history.
	ErrCompacted = errors.New("revision is compacted")
	// ErrFuture says that the asked revision is newer than the newest commit.
	ErrFuture = errors.New("revision is in the future")
	// ErrNotTogether says that writes cannot be made by one commit.
	ErrNotTogether = errors.New("these writes are no commit")
	// ErrTooLarge says that a key, a value or a commit is larger than the store takes.
	ErrTooLarge = errors.New("write is too large")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("storage is closed")
	// ErrStopped says that a write failed in a way after which nobody knows what
	// is on the disk, so that the store takes no more until it is opened anew.
	ErrStopped = errors.New("storage takes no more writes after a failure")
	// ErrFull says that there is no room for what should be written. Deletions
	// may still work.
	ErrFull = errors.New("storage has no room")
)

// CompactedError is ErrCompacted with the oldest revision that still works, for
// stores that can tell it.
type CompactedError struct{ Oldest Revision }

func (e *CompactedError) Error() string {
	return fmt.Sprintf("%v: the oldest one is %d", ErrCompacted, e.Oldest)
}

// Is makes it an ErrCompacted.
func (e *CompactedError) Is(target error) bool { return target == ErrCompacted }

// ConflictError says that Write.Expect did not hold. Current is the record
// found instead; its Revision is 0 if the key does not exist.
type ConflictError struct {
	Key     string
	Expect  Revision
	Current Record
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("commit %q: expected revision %d, found %d", e.Key, e.Expect, e.Current.Revision)
}
