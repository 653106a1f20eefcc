// Package watch keeps the records of a storage.Backend in memory, and serves lists,
// lists at an older revision, and watches from memory.
//
// A [CacheSet] follows a backend with a single goroutine and divides its keys among
// caches, by default a cache for each first path element. A [Cache] is a copy-on-write
// tree of entries and a bounded log of events. A watcher is a [Cursor], a position
// in that log: it costs a few hundred bytes, no goroutine and no buffer. If a cursor
// begins before the log, it reads the missing events from the backend's history. If it
// falls behind while it reads the log, it fails with storage.ErrCompacted. A cursor never
// delays a commit or another cursor.
//
// The package works on keys, bytes and revisions. A program converts each record to an
// entry once, for all readers. An entry is the record itself ([Record]) or a decoded
// value with an embedded Record.
//
// # The writer
//
// After Open, only the goroutine of the CacheSet changes the trees, the logs and the
// sets of damaged keys, so it reads them without a lock. All other goroutines hold
// Cache.mu to read them, and keep only immutable values: an entry, the tree of a
// snapshot, a run of the log. Lists and filters work on these values after the lock is
// released, so Query.Match never delays a commit. Options.Replaced and the function
// given to Cache.SetTopics run under the lock.
//
// # Order
//
// A commit is applied to its caches in the order of the storage keys. The tree and the
// log of a cache change without releasing its lock in between, so a snapshot and
// the position in the log after it always match. Afterwards, with no lock held,
// CacheSet.Revision advances, which releases the callers of Wait; then the waiting
// cursors of all changed caches wake; then the waiting feeds.
//
// Therefore every cache shows at least CacheSet.Revision, and in addition at most the
// next commit, which is being applied. A reader of several caches reads
// CacheSet.Revision first (Feed), or calls Wait.
//
// # Locks
//
// From the outermost to the innermost: CacheSet.waits, CacheSet.caches, Cache.mu. No
// goroutine holds the locks of two caches.
//
// No wake-up is lost: a waiter registers under the lock under which it found nothing to
// read (Cache.mu for cursors, CacheSet.waits for Wait and feeds), and the writer takes
// that lock after the event can be read and before it wakes the waiters.
package watch
