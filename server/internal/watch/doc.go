// Package watch is the cache between a store and its readers: the current
// objects, the log of what changed, snapshots of older states, and queries.
//
// A Hub follows one storage.Backend with one goroutine and keeps a Cache for
// each resource type. A Cache is a copy-on-write tree of entries and one bounded
// event log. A watcher is a Cursor: a position in that log. It costs a few
// hundred bytes, no goroutine and no buffer; one that falls off the old end gets
// ErrGone and delays nobody.
//
// The package knows keys, revisions and JSON objects, but no HTTP. Keys sort by
// their bytes, "namespace/name".
//
// # Who writes
//
// After Open the hub's goroutine alone changes what caches tell: their trees, logs and
// sets of damaged objects. It may therefore read those without a lock. Everybody else
// holds the cache's lock to look, and leaves with what is never written again: an
// entry, a snapshot's tree, a run of the log. Lists and queries run on these without
// it, so no function of a caller (Query.Field, Query.Unsure, the maker of a
// representation) can delay a commit, but for the one that Cache.Index takes.
//
// What readers add to an entry (decoded forms, other representations, its place in a
// block of texts) is set with compare-and-swap and can be made again at any time.
//
// # A commit's way
//
// The changes of one commit go into one cache at a time, in the order of the storage
// keys. Under the lock of a cache its tree and its log change together, so a state
// and the position after it fit each other. Then, with no lock held: the hub's
// revision advances, which lets writers go on that wait to see what they wrote; then
// the parked cursors of all these caches are woken, then the feeds.
//
// So the hub's revision says what all caches show, and a cache may be ahead of it by
// the commit that is being applied, never by more, and never behind. Who looks at
// several types takes the hub's revision before (Feed), or waits for one (Hub.Wait).
//
// # Locks
//
// From the outermost to the innermost: Hub.waits, Hub.caches, Cache.mu, held.mu. Two
// caches are never locked at once. The lock of a representation (form.mu), held while
// somebody makes it, comes before formBudget.mu; both are taken without the others.
//
// No wake-up is lost: whoever is about to wait registers under the lock under which he
// saw that there is nothing yet (Cache.mu for cursors, Hub.waits for gates and feeds),
// and whoever wakes him takes that lock when what he waits for can be seen.
package watch
