// Package objectcache holds a server's objects in memory: a watch.CacheSet whose entries are
// JSON objects, with a cache for each resource type.
//
// It adds to package watch what is particular to objects: their keys "namespace/name",
// label and field selectors, decoded objects, encodings beside JSON, the joined text of
// lists, and the bytes that each namespace uses. It knows no HTTP.
//
// An Entry is made once for each record. What readers add to it (decoded objects,
// encodings, its place in a block) is set by compare-and-swap and can be made again at any
// time, so no lock is held while it is made, except encoding.mu, under which Entry.Encoded
// makes one encoding. That lock comes before encodingBudget.mu.
//
// Locks, from the outermost to the innermost: those of package watch, sizes.mu. The
// CacheSet's map of caches has a lock of its own, under which caches of package watch are
// created.
package objectcache
