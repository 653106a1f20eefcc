package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"orch.io/controlplane/storage"
)

// dialect is what the databases do not have in common. Placeholders are $1, $2, ... in
// both.
type dialect interface {
	// where names the database in errors.
	where() string
	// exists reports whether the database has the tables of a store. It changes nothing.
	exists(ctx context.Context) (bool, error)
	// open makes the tables if they do not exist. What it opened before an error it
	// returns beside the error.
	open(ctx context.Context) (pools, error)
	// lookEvery is how often a store looks whether another one has committed.
	lookEvery() time.Duration
	// listen calls heard with the newest revision whenever another store has committed,
	// until the connection fails. Where it returns nil there is nothing to listen to.
	listen(ctx context.Context, heard func(storage.Revision)) error

	// lock keeps other transactions from changing the state until tx ends, and returns stateOf.
	lock(ctx context.Context, tx *sql.Tx, seen marks) (state, error)
	// gone returns a query for state.gone, for a statement in which s is the table state, and its
	// arguments, the first of which is number first of the statement.
	gone(seen marks, first int) (query string, args []any)
	// newest returns the revisions of those keys that exist.
	newest(ctx context.Context, tx *sql.Tx, keys []string) (map[string]storage.Revision, error)
	// insert adds what commits did, and makes the last one the newest of the state.
	insert(ctx context.Context, tx *sql.Tx, made batch) error

	// long lets a transaction take any time, and returns what the clock of commits says.
	long(ctx context.Context, tx *sql.Tx) (now int64, err error)
	// add adds records of another store, but those that are there.
	add(ctx context.Context, tx *sql.Tx, records []storage.Record) error

	// turn waits until nobody else compacts, for as long as the transaction.
	turn(ctx context.Context, tx *sql.Tx) error
	// oldest returns the oldest revision that is retained if all is that was replaced
	// in the last keep.
	oldest(ctx context.Context, db *sql.DB, keep time.Duration) (storage.Revision, error)
	// size is a query for the bytes that the store takes.
	size() string

	// fault returns what the contract calls an error, nil if it has no name for it.
	fault(err error) error
	// trouble returns in a few words what is wrong with the database, "" if an error is none
	// that it reports.
	trouble(err error) string
	// passing says that what failed was not done, or has no effect if it is done twice,
	// and may succeed if it is tried again.
	passing(err error) bool
}

// pools are the connections of a store.
type pools struct {
	reads   *sql.DB
	commits *sql.DB // of one connection
	upkeep  *sql.DB // for what else is written; one of the others
}

func (p pools) close() error {
	var errs []error
	for _, db := range []*sql.DB{p.reads, p.commits} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// batch is what the commits of one transaction did: the records that they wrote, without
// a value where they deleted.
type batch struct {
	first, last storage.Revision // no revision between them is left out
	id          int64            // of all these commits
	records     []storage.Record
}
