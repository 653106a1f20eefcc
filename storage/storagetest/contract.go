package storagetest

import (
	"errors"
	"fmt"
)

// sentence is one of those that the contract of a store is made of: where it stands in
// package storage, and its words.
type sentence string

// The sentences, as the comments of package storage have them.
const (
	allMethods sentence = "Backend: All methods are safe for concurrent use, return when the context ends, and fail with ErrClosed after Close."

	getReturns sentence = "Backend.Get: Get returns the record of key as of revision at, or the newest one if at is 0 (linearizable: every commit that was acknowledged before the call is seen)."
	getFails   sentence = "Backend.Get: It fails with ErrNotFound if the key did not exist then, with ErrCompacted if at lies before the retained history and with ErrFuture if it lies after the newest commit."

	scanReturns sentence = "Backend.Scan: Scan returns the records whose key begins with prefix, in byte order of their keys, as of revision at (0: newest, linearizable), and the revision that they show."
	scanStarts  sentence = "Backend.Scan: start, if not empty, skips keys before it."
	scanShows   sentence = "Backend.Scan: All records belong to that one revision, however long the caller takes; a scan whose revision is compacted meanwhile either completes or yields ErrCompacted."

	commitApplies sentence = "Backend.Commit: Commit applies writes of different keys, all or none, also if the process dies meanwhile, and returns their revision, which is one for all and larger than every revision returned or shown before."
	commitShows   sentence = "Backend.Commit: They are durable, in the store's own sense, and visible to Get, Scan and Revision at one moment, when Commit returns at the latest."
	commitChecks  sentence = "Backend.Commit: If a comparison fails nothing is written and the error is a *ConflictError, of the first key in byte order."
	commitMissing sentence = "Backend.Commit: Deleting a key that does not exist with AnyRevision is ErrNotFound."
	commitRefuses sentence = "Backend.Commit: No writes but guards, or two of one key, are ErrNotTogether."
	commitTakes   sentence = "Backend.Commit: A store takes CommitLength writes of CommitBytes, and maybe more; of what is too much for it nothing is written, and the error is ErrTooLarge."

	guardWrites sentence = "Write.Guard: Guard says that the comparison is all: nothing is written to Key, which has no Value and any Expect but AnyRevision."

	watchYields   sentence = "Backend.Watch: Watch yields every commit under prefix with a revision larger than after, each once, in revision order, without gaps, until the context ends or the consumer stops; then it ends without an error."
	watchEvents   sentence = "Backend.Watch: A commit is its events under prefix, at least one, in byte order of their keys; they stay as they are and must not be modified."
	watchForgets  sentence = "Backend.Watch: If after lies before the retained history it yields ErrCompacted, and nothing else."
	watchInFuture sentence = "Backend.Watch: An after in the future waits and then delivers only what is larger."
	watchBehind   sentence = "Backend.Watch: A consumer that falls behind the retained history gets ErrCompacted and the end; it never delays Commit or other watches."
	watchReplaced sentence = "Event: Prev is the record that the commit replaced; its zero value means that the key did not exist."

	revisionNewest sentence = "Backend.Revision: It is linearizable: at least that of every commit acknowledged before the call."
	revisionGrows  sentence = "Revision: It never decreases, not across restarts and not after a crash."

	compactOlder sentence = "Backend.Compact: Compact forgets the history before the given revision: reads and watches at or after it still work, older ones give ErrCompacted."
	compactTakes sentence = "Backend.Compact: Compacting at a revision that was compacted already is no error, in the future ErrFuture."

	closeEnds  sentence = "Backend.Close: Close ends watches, waits for running calls and frees what the store holds."
	closeTwice sentence = "Backend.Close: A second Close returns nil."

	stampKeeps    sentence = "Stamper.Stamp: Stamp stores value under name if nothing is there and returns what is there now."
	historyYields sentence = "Historian.History: History yields what Watch(ctx, prefix, after) yields up to the revision last, which must have been committed, and ends."
	sequenceOf    sentence = "Sequencer.CommitSequence: CommitSequence commits first as Commit does and then further values of its key, each in place of the one before."
	importFills   sentence = "Importer.Import: Afterwards the store has the stamps, the history begins at oldest, as far as the store retains so much, and the newest revision is the largest of them all."
	importEmpty   sentence = "Importer.Import: Import fills a store in which nothing was ever committed; any other one is ErrNotEmpty, as is one that has another value of one of the stamps."
	importWhole   sentence = "Importer.Import: After an error, which is that of records if they end in one, or the end of the process the store is empty, or refuses to be used."
	stampsList    sentence = "StampReader.Stamps: Stamps returns all stamps by their names."
	retains       sentence = "Retention: a state stays readable until Keep has passed since it was replaced, and not longer than a 32nd of that more, whether or not anything is committed or read in the meantime."
)

// breach says which sentence a store breaks, and what it did.
type breach struct {
	of  sentence
	did string
}

func (b *breach) Error() string { return b.did }

func breaks(of sentence, format string, args ...any) *breach {
	return &breach{of, fmt.Sprintf(format, args...)}
}

// breachIn returns the breach that an error is, or nil.
func breachIn(err error) *breach {
	var b *breach
	if errors.As(err, &b) {
		return b
	}
	return nil
}
