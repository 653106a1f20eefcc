package storage

import (
	"context"
	"errors"
	"iter"
)

// Importer is implemented by stores that can import the records of another store and keep their
// revisions. Package backup uses it.
type Importer interface {
	Stamper

	// Import fills a store to which nothing was ever committed. It fails with ErrNotEmpty if there was
	// a commit, or if the store has a different value for one of the stamps.
	//
	// For each key, records must yield the newest record up to the revision oldest, if the key has
	// one, and all later records. A record with a nil Value is a deletion. The order is arbitrary, and
	// a record may be yielded twice. If records yields an error, Import fails with it.
	//
	// After Import the store has the stamps, its history begins at oldest or at the start of what the
	// store retains, and its newest revision is the largest of oldest and the revisions of the
	// records. The store must not be used until Import returns, and reads show none of the records and
	// stamps until then. If Import fails or the process ends during it, the store is empty or refuses
	// to be used.
	Import(ctx context.Context, stamps map[string]string, oldest Revision, records iter.Seq2[Record, error]) error
}

// ErrNotEmpty is returned if the target of an import holds data or ever did.
var ErrNotEmpty = errors.New("storage is not empty")

// IncompleteKey exists in a store while package backup fills it by ordinary commits, because the store
// is not an Importer. A store that has this key is incomplete and must not be served.
const IncompleteKey = "unfinished"

// StampReader is implemented by stores that can list their stamps.
type StampReader interface {
	Stamper
	// Stamps returns the values of all stamps by name. The map belongs to the caller.
	Stamps(ctx context.Context) (map[string]string, error)
}
