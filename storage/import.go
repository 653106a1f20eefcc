package storage

import (
	"context"
	"errors"
	"iter"
)

// Importer is implemented by stores that can take the records of another store with the
// revisions that they have there. Package transfer uses it.
type Importer interface {
	Stamper

	// Import fills a store in which nothing was ever committed; any other one is
	// ErrNotEmpty, as is one that has another value of one of the stamps. Of each key
	// records has the newest one up to the revision oldest, if there is one, and all later
	// ones; one without a value is a deletion. They come in any order, some twice.
	// Afterwards the store has the stamps, the history begins at oldest, as far as the
	// store retains so much, and the newest revision is the largest of them all.
	//
	// Until Import returns, nobody else uses the store, and nothing of the records and the
	// stamps is shown. After an error, which is that of records if they end in one, or the
	// end of the process the store is empty, or refuses to be used.
	Import(ctx context.Context, stamps map[string]string, oldest Revision, records iter.Seq2[Record, error]) error
}

// ErrNotEmpty says that a store that should be filled holds something, or did.
var ErrNotEmpty = errors.New("storage is not empty")

// UnfinishedKey is there while a store is being filled that is no Importer: whoever
// finds it has a part of what should be there, and must not serve it.
const UnfinishedKey = "unfinished"

// StampReader is implemented by stores whose stamps can be listed.
type StampReader interface {
	Stamper
	// Stamps returns all stamps by their names.
	Stamps(ctx context.Context) (map[string]string, error)
}
