// Package backup moves what a store holds: into another store, of whatever kind, and
// into files and back. The source may be served and written to meanwhile.
//
//	Copy     everything from one store into an empty one, with a short stop of writes
//	Backup   everything, or what changed since an earlier backup, into a file
//	Restore  a backup, with the ones that were made on top of it, into an empty store
//	Handler  a backup over HTTP, of a store that the serving process alone can open
//	Fetch    what such a Handler answers
//	Verify   whether files are whole and stand on each other, without a store
//
// # Revisions
//
// A store that is a storage.Importer (memstore, badgerstore, a store over SQL) gets every
// record with the revision that it had, and as much of the history as the source retains:
// clients go on with the resourceVersions and watches that they have, and miss nothing.
//
// A store that chooses its revisions by itself, such as etcd, gets the newest records
// with new revisions, each larger than every one that the record had in the source: the
// store's revisions are raised, by commits of no other use, as far as those of the source
// went. No resourceVersion goes back, and watches from before are told that their revision
// is compacted, so that clients list anew. That takes a commit for each revision of the
// source, or fewer where the store's revisions have gaps, and by compacting forgets the history of whatever else is in the same cluster.
//
// Both are right for clients that saw nothing newer than what is moved. Where they may have, as
// after the loss of a store of which there is an older backup, set StartOver.
//
// # What is checked
//
// At the end the keys, values and revisions that arrived are compared with those that were
// read, by their number and a sum of hashes. Copy reads the source twice for it, before its writers
// are stopped, so that their stop lasts as long as it takes to show and to read the destination,
// however long the source takes. That the source was written to after its writers should have
// stopped ends it at last. A record that cannot be read ends it with a *storage.DamagedError, unless
// SkipDamaged is set. A storage.Importer that is filled in part shows nothing of it, or is of no
// more use, so that to begin again takes an empty one; badgerstore.Fill sees to it for a
// directory. Any other store has the key storage.UnfinishedKey until all is there: Copy begins
// it again, and neither it nor Backup takes it as a source.
// A server refuses to start over a store that has it.
//
// # Files
//
// A file consists of blocks with a checksum each, in a fixed order; the last one has the
// counts, a hash of all before and a sum of the state. One that is cut, changed or put together
// otherwise, or whose entries do not make that state, is refused with ErrDamaged, and nothing of
// it is shown. Who can write files can make one that fits: keep them where nobody else writes. It
// holds secrets as the store does.
//
// An incremental file is a whole state, too, but for values that the one before it has. It
// names that file, and is refused on top of any other one. It does not depend on the
// history: the one before may be of any age.
package backup

import (
	"context"
	"time"

	"orch.io/controlplane/storage"
)

// Options say how something is moved. All fields may be left out.
type Options struct {
	// Progress is called every now and then, by one goroutine, which waits for it. If it is
	// set, Backup and Copy count the records of the source before they read them.
	Progress func(Progress)

	// Cutover is called by Copy when all records are copied and few commits are left. It
	// stops the writers of the source; what was committed until it returns is copied. An
	// error ends Copy. nil: nobody writes.
	Cutover func(context.Context) error

	// SkipDamaged leaves out records that cannot be read, and the history, of which
	// nobody knows whether it can. Report.Damaged names them.
	SkipDamaged bool

	// Since makes Backup leave out values that the backup of that position has.
	Since Position

	// StartOver is for Restore where clients have seen what happened after the backup:
	// the history begins at this revision, which must not be less than any of theirs, so
	// that all of them list anew. 0: they go on, as they may if there was nothing to see.
	StartOver storage.Revision
}

// Phase is what is being done.
type Phase string

// The phases, in the order in which they begin.
const (
	Raising   Phase = "raising"   // revisions of a store that chooses them by itself
	Copying   Phase = "copying"   // records, and the commits of meanwhile
	Verifying Phase = "verifying" // what was read, and at the end what arrived
	Following Phase = "following" // commits, until few are left
)

// Progress is how far it is.
type Progress struct {
	Phase    Phase
	Versions int64            // records and deletions that were read, in Verifying those that were compared, in Raising revisions
	Total    int64            // of Versions, an estimate; 0: not known
	Bytes    int64            // of their keys and values
	Rate     float64          // Versions per second since the phase began
	Left     time.Duration    // until the phase ends at that rate; 0: not known
	Revision storage.Revision // that the source is read up to; in Raising the newest one of the destination
}

// Position is where a backup ends: the newest revision in it and the hash of the file.
type Position struct {
	Revision storage.Revision `json:"revision"`
	ID       string           `json:"id"`
}

// Report is what was moved.
type Report struct {
	// Revision is the newest one of the source, Oldest the one that the history begins at.
	Revision, Oldest storage.Revision
	Keys             int64 // that exist
	Versions         int64 // records and deletions, those of the history included
	Bytes            int64 // of their keys and values

	// Kept says that the destination has the revisions of the source. Reached is the newest
	// one there.
	Kept    bool
	Reached storage.Revision

	// Damaged are what was left out.
	Damaged []*storage.DamagedError

	// Position and Since are those of a file. Since is zero if it stands alone.
	Position, Since Position
}
