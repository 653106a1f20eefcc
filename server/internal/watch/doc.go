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
// their bytes, "namespace/name". (Spec: conventions, resource version
// semantics, chunked lists, watch usage.)
package watch
