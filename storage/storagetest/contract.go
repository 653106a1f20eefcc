package storagetest

import (
	"errors"
	"fmt"
)

// sentence is a sentence of the contract in package storage: the declaration that it documents, a colon, and its text.
type sentence string

// The sentences of the contract, copied from the comments of package storage. A test verifies the copies.
const (
	allMethods sentence = "Backend: All methods are safe for concurrent use, return when the context ends, and fail with ErrClosed after Close."

	getReturns sentence = "Backend.Get: Get returns the record of key as of revision at. If at is 0, it returns the newest record, and the read is linearizable: it sees every commit that was acknowledged before the call."
	getFails   sentence = "Backend.Get: It fails with ErrNotFound if the key did not exist at that revision, with ErrCompacted if at is before the retained history, and with ErrFuture if at is after the newest commit."

	scanReturns sentence = "Backend.Scan: Scan returns the records whose keys begin with prefix, in byte order of their keys, as of revision at, and the revision that was read. If at is 0, Scan reads the newest revision, and the read is linearizable."
	scanStarts  sentence = "Backend.Scan: If start is not empty, Scan skips the keys before it."
	scanShows   sentence = "Backend.Scan: All records are of that one revision, however long the caller takes to consume them. If the revision is compacted during the scan, the sequence either completes or yields ErrCompacted."

	commitApplies sentence = "Backend.Commit: Commit applies writes of different keys atomically, even if the process crashes, and returns the revision of the commit. All writes get that one revision, which is larger than every revision that the store returned before."
	commitShows   sentence = "Backend.Commit: The writes become visible to Get, Scan and Revision at the same moment, and they are visible and durable (in the sense of the store) when Commit returns."
	commitChecks  sentence = "Backend.Commit: If a comparison fails, nothing is written, and the error is a *ConflictError for the first such key in byte order."
	commitMissing sentence = "Backend.Commit: Deleting a key that does not exist fails with ErrNotFound if Expect is AnyRevision or 0."
	commitRefuses sentence = "Backend.Commit: A commit without writes, a commit of guards only, and two writes of one key fail with ErrInvalidCommit."
	commitTakes   sentence = "Backend.Commit: Every store accepts CommitLength writes of CommitBytes bytes; if a commit is larger than the store accepts, nothing is written, and the error is ErrTooLarge."

	guardWrites sentence = "Write.Guard: Guard makes the write a comparison only: the commit fails unless Key has the revision Expect, but does not write Key."

	watchYields   sentence = "Backend.Watch: Watch yields each commit that has a revision larger than after and wrote a key with the prefix, exactly once and in revision order, until the context ends or the consumer stops. Then the sequence ends without an error."
	watchEvents   sentence = "Backend.Watch: Each element of the sequence is one commit: its events for keys with the prefix, at least one, in byte order of their keys. The consumer may keep the slice but must not modify it."
	watchForgets  sentence = "Backend.Watch: If after is before the retained history, Watch yields only ErrCompacted."
	watchInFuture sentence = "Backend.Watch: If after is in the future, Watch waits and yields only commits with a larger revision."
	watchBehind   sentence = "Backend.Watch: A consumer that falls behind the retained history gets ErrCompacted, which ends the sequence; a slow consumer never delays Commit or other watches."
	watchReplaced sentence = "Event: Prev is the record that the commit replaced; its zero value means that the key did not exist."

	revisionNewest sentence = "Backend.Revision: It is linearizable: the result is at least the revision of every commit that was acknowledged before the call."
	revisionGrows  sentence = "Revision: It never decreases, not even after a restart or a crash."

	compactOlder sentence = "Backend.Compact: Compact drops the history before the given revision: reads and watches at or after it still work, older ones fail with ErrCompacted."
	compactTakes sentence = "Backend.Compact: Compact returns nil if that history was dropped before, and ErrFuture if the revision is in the future."

	closeEnds  sentence = "Backend.Close: Close ends watches, waits for running calls and releases the resources of the store."
	closeTwice sentence = "Backend.Close: A second Close returns nil."

	stampKeeps    sentence = "Stamper.Stamp: Stamp stores value under name unless the name has a value already, and returns the value that the name has then."
	historyYields sentence = "HistoryReader.History: History yields the commits of Watch(ctx, prefix, after) up to and including the revision last, which must have been committed, and ends."
	sequenceOf    sentence = "Sequencer.CommitSequence: CommitSequence commits first as Commit does, and then each value of then to the same key, replacing the value before it."
	importFills   sentence = "Importer.Import: After Import the store has the stamps, its history begins at oldest or at the start of what the store retains, and its newest revision is the largest of oldest and the revisions of the records."
	importEmpty   sentence = "Importer.Import: It fails with ErrNotEmpty if there was a commit, or if the store has a different value for one of the stamps."
	importWhole   sentence = "Importer.Import: If Import fails or the process ends during it, the store is empty or refuses to be used."
	stampsList    sentence = "StampReader.Stamps: Stamps returns the values of all stamps by name."
	retains       sentence = "Retention: a revision stays readable until Keep has passed since the next commit replaced it, and at most Keep/32 longer, even if nothing is committed or read in the meantime."
)

// breach is an error: a store violates a sentence.
type breach struct {
	of  sentence
	did string
}

func (b *breach) Error() string { return b.did }

func breaks(of sentence, format string, args ...any) *breach {
	return &breach{of, fmt.Sprintf(format, args...)}
}

// breachIn returns the breach in the chain of err, or nil.
func breachIn(err error) *breach {
	var b *breach
	if errors.As(err, &b) {
		return b
	}
	return nil
}
