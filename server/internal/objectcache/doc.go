// Package objectcache holds a server's objects in memory: a watch.CacheSet whose entries are JSON objects, with a
// cache for each resource type.
//
// It adds to package watch everything that is specific to objects: their keys "namespace/name", label and field
// selectors, decoded objects, encodings other than JSON, the joined text of lists, and the number of bytes that each
// namespace uses. It does not depend on HTTP.
//
// An Entry is made once for each record. Readers add to it lazily: decoded objects, encodings, its place in a block.
// These are set by compare-and-swap and can be made again at any time, so no lock is held while they are made. The
// exception is encoding.mu, under which Entry.Encoded makes an encoding. encoding.mu is acquired before
// encodingBudget.mu.
//
// The locks of package watch are acquired before sizes.mu. Set.caches has its own lock, which is held while caches of
// package watch are created.
package objectcache
