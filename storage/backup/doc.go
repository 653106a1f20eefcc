// Package backup copies the content of a store into another store, or into a file and back. The source can be in use
// and be written to during a copy or a backup.
//
//	Copy     copies a store into an empty store, with a short interruption of writes
//	Backup   writes a full or an incremental backup to a file
//	Restore  fills an empty store from a full backup and the incremental backups based on it
//	Handler  serves a backup over HTTP, for a store that only the serving process can open
//	Fetch    downloads a backup from a Handler
//	Verify   checks backup files without a store
//
// # Revisions
//
// If the destination is a storage.Importer (memstore, badgerstore, a store on an SQL database), all records keep their
// revisions, and the history that the source retains is copied. Clients continue with their resourceVersions and
// watches and miss nothing.
//
// Other stores, such as etcd, choose their own revisions. They get only the newest records, and each record gets a
// revision that is larger than all its revisions in the source. To achieve that, the copy first makes empty commits
// until the revision of the destination has reached the revision of the source. That takes one commit for each
// revision of the source, or fewer if the revisions of the destination have gaps. No resourceVersion decreases, and
// old watches get storage.ErrCompacted, so clients list again. The copy compacts the destination, which also drops
// the history of other data in the same etcd cluster.
//
// Both methods are correct for clients that have seen no commits after the backup. If clients may have seen later
// commits, for example when a lost store is restored from an older backup, set Options.StartOver.
//
// # Verification
//
// At the end, keys, values and revisions in the destination are compared with those that were read, by number and by a
// sum of hashes. Copy also reads the source a second time and compares. It does that before it stops the writers, so
// their interruption depends only on the time to publish and read the destination. If the source is written to after
// its writers were stopped, Copy fails. If a record cannot be read, it fails with a *storage.DamagedError, unless
// Options.SkipDamaged is set.
//
// If a copy or restore fails, a storage.Importer shows none of the records, or it is unusable and must be replaced by an
// empty store; badgerstore.Fill does that for a directory. Any other store has the key storage.IncompleteKey until
// it is complete. Copy and Restore start over in such a store. Copy and Backup reject it as a source, and a server
// does not start with it.
//
// # Files
//
// A backup file consists of blocks with checksums. The last block has the number of entries, a hash of the preceding
// bytes, and a sum of hashes of the state. If a file is truncated or modified, or its entries do not result in that
// state, it is rejected with ErrDamaged before any of it becomes visible. These checks do not detect a deliberately
// forged file, so store backups where only trusted users can write. A backup contains the secrets of the store.
//
// An incremental backup describes a whole state but omits the values that the previous backup has. It contains the
// hash of the previous backup and cannot be combined with another backup. It does not depend on the retained history,
// so the previous backup may be of any age.
package backup

import (
	"context"
	"time"

	"orch.io/controlplane/storage"
)

// Options are the options of Copy, Backup, Restore and Verify. All fields are optional.
type Options struct {
	// Progress is called periodically, by the goroutine that does the work. If it is set, Backup and Copy
	// count the records of the source first.
	Progress func(Progress)

	// Cutover is called by Copy when all records and most commits are copied. It must stop the writers of the
	// source. Commits before it returns are copied. If it fails, Copy fails. It may be nil if the source has
	// no writers.
	Cutover func(context.Context) error

	// SkipDamaged omits damaged records, and the whole history, because it may be damaged, too. Report.Damaged
	// lists the omitted records.
	SkipDamaged bool

	// Base makes Backup write an incremental backup on top of the backup that ends at this position.
	Base Position

	// StartOver is for a Restore after which clients may know newer revisions than the backup has. The history
	// begins at this revision, so all clients list again. It must be at least as large as any revision that a
	// client knows. With 0, clients continue with their revisions.
	StartOver storage.Revision
}

// Phase is a phase of a copy, backup or restore.
type Phase string

// The phases, in the order in which they begin.
const (
	Raising   Phase = "raising"   // raises the revision of a destination that chooses its revisions
	Copying   Phase = "copying"   // copies records and concurrent commits
	Verifying Phase = "verifying" // reads the source again, and at the end the destination
	Following Phase = "following" // copies commits until few are left
)

// Progress is the progress of a phase.
type Progress struct {
	Phase    Phase
	Versions int64            // records and deletions that were read (in Verifying: compared; in Raising: revisions)
	Total    int64            // estimate of Versions at the end of the phase; 0 if unknown
	Bytes    int64            // size of the keys and values of Versions
	Rate     float64          // Versions per second since the phase began
	Left     time.Duration    // estimated time to the end of the phase; 0 if unknown
	Revision storage.Revision // revision up to which the source was read; in Raising: newest revision of the destination
}

// Position identifies a backup: its newest revision and the hash of the file.
type Position struct {
	Revision storage.Revision `json:"revision"`
	ID       string           `json:"id"`
}

// Report describes the result of a copy, backup, restore or verification.
type Report struct {
	// Revision is the newest revision of the source. Oldest is the start of the copied history.
	Revision, Oldest storage.Revision
	Keys             int64 // number of existing keys
	Versions         int64 // number of records and deletions, including the history
	Bytes            int64 // size of their keys and values

	// RevisionsKept reports whether the destination has the revisions of the source. DestinationRevision is the newest revision of
	// the destination.
	RevisionsKept       bool
	DestinationRevision storage.Revision

	// Damaged are the omitted records, see Options.SkipDamaged.
	Damaged []*storage.DamagedError

	// Position identifies the backup, and Since the backup that it is based on. Since is zero for a full backup.
	Position, Base Position
}
