package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"orch.io/controlplane/storage"
)

// dialect contains the operations in which the databases differ. Placeholders are $1, $2, ... in both.
type dialect interface {
	// where returns a description of the database for errors.
	where() string
	// exists reports whether the database has the tables of a store. It changes nothing.
	exists(ctx context.Context) (bool, error)
	// open connects to the database and creates the tables if they do not exist. If it fails, it also
	// returns the connections that it opened, and the caller closes them.
	open(ctx context.Context) (pools, error)
	// pollInterval returns the interval at which a store checks for commits of other processes.
	pollInterval() time.Duration
	// listen calls heard with the newest revision whenever another process has committed, until the
	// connection fails. It returns nil if the database has no notifications.
	listen(ctx context.Context, heard func(storage.Revision)) error

	// lock prevents other transactions from changing the state until tx ends, and returns stateOf.
	lock(ctx context.Context, tx *sql.Tx, seen marks) (state, error)
	// gone returns a query for state.gone and its arguments. The query is part of a statement in which
	// s is the table state; first is the number of its first placeholder.
	gone(seen marks, first int) (query string, args []any)
	// newest returns the revisions of the keys that exist.
	newest(ctx context.Context, tx *sql.Tx, keys []string) (map[string]storage.Revision, error)
	// insert writes the records and the commits of a batch, and sets the newest revision of the state.
	insert(ctx context.Context, tx *sql.Tx, made batch) error

	// allowLong removes the time limit of a transaction, and returns the current time on the clock that
	// dates commits, in nanoseconds since 1970.
	allowLong(ctx context.Context, tx *sql.Tx) (now int64, err error)
	// add inserts imported records, and skips those that exist already.
	add(ctx context.Context, tx *sql.Tx, records []storage.Record) error

	// lockCompaction waits until no other process compacts, and keeps others from compacting until tx
	// ends.
	lockCompaction(ctx context.Context, tx *sql.Tx) error
	// oldest returns the oldest revision to retain if everything replaced within the last keep is
	// retained.
	oldest(ctx context.Context, db *sql.DB, keep time.Duration) (storage.Revision, error)
	// size returns a query for the number of bytes that the store uses.
	size() string

	// storageError returns the error of package storage that corresponds to err, or nil if there is
	// none.
	storageError(err error) error
	// problem describes an error that the database reported in a few words, without details that API
	// clients must not see. It returns "" for other errors.
	problem(err error) string
	// retryable reports whether a failed operation can be repeated: it had no effect, or repeating it
	// has no further effect, and it may succeed then.
	retryable(err error) bool
}

// pools holds the connections of a store.
type pools struct {
	reads   *sql.DB
	commits *sql.DB // one connection
	upkeep  *sql.DB // for other writes; the same as reads or commits
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

// batch is the result of the commits of one transaction: the records that they wrote. A record with a
// nil value is a deletion.
type batch struct {
	first, last storage.Revision // the revisions of the commits, without gaps
	id          int64            // the random ID of all these commits
	records     []storage.Record
}
