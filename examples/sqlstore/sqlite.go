package sqlstore

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"orch.io/controlplane/storage"
)

const (
	// busyTime limits how long a transaction waits for a transaction of another process.
	busyTime = 10 * time.Second
	// walPages is the size of the write-ahead log, in pages, at which SQLite moves it into the database
	// file.
	walPages = 16 << 10
	// marksInText is the maximal number of marks that are written into the text of a query.
	marksInText = 16
)

//go:embed sqlite.sql
var sqliteSchema string

// sqliteFile is the dialect of SQLite. The file is opened by one connection for writes, whose
// transactions take the write lock at once, and several connections for reads.
type sqliteFile struct{ path string }

func (d sqliteFile) where() string               { return d.path }
func (d sqliteFile) pollInterval() time.Duration { return 100 * time.Millisecond }

func (d sqliteFile) exists(ctx context.Context) (there bool, err error) {
	file, err := filepath.Abs(d.path)
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		return false, err
	}
	q := url.Values{"mode": {"rw"}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds())}} // rw does not create the file
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: file, RawQuery: q.Encode()}).String())
	if err != nil {
		return false, err
	}
	err = db.QueryRowContext(ctx, `SELECT count(*) = 4 FROM sqlite_master WHERE type = 'table' AND name IN ('records', 'commits', 'state', 'stamps')`).Scan(&there)
	return there, errors.Join(err, db.Close())
}

func (d sqliteFile) open(ctx context.Context) (p pools, err error) {
	if err := d.makePrivate(); err != nil {
		return p, err
	}
	if p.commits, err = d.connect("immediate", 1); err != nil {
		return p, err
	}
	p.upkeep = p.commits
	if p.reads, err = d.connect("deferred", maxReaders); err != nil {
		return p, err
	}
	return p, d.prepare(ctx, p.commits)
}

// makePrivate restricts the files of the database to their owner. SQLite creates its other files with
// the same mode.
func (d sqliteFile) makePrivate() error {
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(d.path+suffix, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func (d sqliteFile) connect(lock string, connections int) (*sql.DB, error) {
	file, err := filepath.Abs(d.path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_txlock": {lock}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "journal_mode(wal)", "synchronous(full)",
		fmt.Sprintf("wal_autocheckpoint(%d)", walPages),
	}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: file, RawQuery: q.Encode()}).String())
	if err == nil {
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
	}
	return db, err
}

// prepare creates the tables. If another process opens a new file at the same time, it holds a lock
// while SQLite sets up the log, and SQLite does not wait for this lock by itself.
func (d sqliteFile) prepare(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, busyTime)
	defer cancel()
	for {
		_, err := db.ExecContext(ctx, sqliteSchema)
		if err == nil {
			err = d.addColumns(ctx, db)
		}
		if err == nil || !d.retryable(err) || !wait(ctx, 10*time.Millisecond) {
			return err
		}
	}
}

// addColumns adds the columns that tables of an earlier version lack. If another process adds a column at
// the same moment, addColumns fails and the next start finds nothing to add.
func (d sqliteFile) addColumns(ctx context.Context, db *sql.DB) error {
	for _, c := range []struct{ table, column string }{{"state", "lost"}, {"state", "history"}, {"commits", "id"}} {
		var there bool
		err := db.QueryRowContext(ctx, `SELECT count(*) > 0 FROM pragma_table_info($1) WHERE name = $2`, c.table, c.column).Scan(&there)
		if err == nil && !there {
			_, err = db.ExecContext(ctx, `ALTER TABLE `+c.table+` ADD COLUMN `+c.column+` INTEGER NOT NULL DEFAULT 0`)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listen returns at once, because SQLite has no notifications.
func (d sqliteFile) listen(context.Context, func(storage.Revision)) error { return nil }

// lock only reads, because each transaction of the connection for writes holds the write lock.
func (d sqliteFile) lock(ctx context.Context, tx *sql.Tx, seen marks) (state, error) {
	return stateOf(ctx, d, tx, seen)
}

// gone writes the marks into the text of the query, because SQLite takes longer to prepare a query with
// json_each. The length of a text is limited, so a query for many marks gets them as an argument.
func (d sqliteFile) gone(seen marks, first int) (query string, args []any) {
	text := seen.text()
	rows := strings.NewReplacer("[[", "VALUES (", "],[", "), (", "]]", ")").Replace(text)
	switch {
	case text == "[]":
		return `SELECT NULL`, nil
	case len(seen) > marksInText:
		rows, args = fmt.Sprintf(`SELECT value ->> 0, value ->> 1 FROM json_each($%d)`, first), []any{text}
	}
	return `WITH m (revision, id) AS (` + rows + `) SELECT min(revision) FROM m WHERE revision >= s.floor
		AND NOT EXISTS (SELECT 1 FROM commits WHERE revision = m.revision AND id = m.id)`, args
}

func (d sqliteFile) newest(ctx context.Context, tx *sql.Tx, keys []string) (map[string]storage.Revision, error) {
	revisions := make(map[string]storage.Revision, len(keys))
	for _, key := range keys {
		var revision storage.Revision
		var deleted bool
		err := tx.QueryRowContext(ctx, `SELECT revision, deleted FROM records WHERE key = $1 ORDER BY revision DESC LIMIT 1`, []byte(key)).
			Scan(&revision, &deleted)
		switch {
		case err == nil && !deleted:
			revisions[key] = revision
		case err != nil && err != sql.ErrNoRows:
			return nil, err
		}
	}
	return revisions, nil
}

func (d sqliteFile) insert(ctx context.Context, tx *sql.Tx, made batch) error {
	now := time.Now().UnixNano()
	for revision := made.first; revision <= made.last; revision++ {
		if _, err := tx.ExecContext(ctx, `INSERT INTO commits VALUES ($1, $2, $3)`, revision, now, made.id); err != nil {
			return err
		}
	}
	for _, r := range made.records {
		_, err := tx.ExecContext(ctx, `INSERT INTO records VALUES ($1, $2, $3, $4)`, []byte(r.Key), r.Revision, r.Value == nil, r.Value)
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `UPDATE state SET revision = $1`, made.last)
	return err
}

func (d sqliteFile) allowLong(context.Context, *sql.Tx) (now int64, err error) {
	return time.Now().UnixNano(), nil
}

func (d sqliteFile) add(ctx context.Context, tx *sql.Tx, records []storage.Record) error {
	for _, r := range records {
		_, err := tx.ExecContext(ctx, `INSERT INTO records VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, []byte(r.Key), r.Revision, r.Value == nil, r.Value)
		if err != nil {
			return err
		}
	}
	return nil
}

// lockCompaction does nothing, because only one transaction can write.
func (d sqliteFile) lockCompaction(context.Context, *sql.Tx) error { return nil }

func (d sqliteFile) oldest(ctx context.Context, db *sql.DB, keep time.Duration) (oldest storage.Revision, err error) {
	err = db.QueryRowContext(ctx, oldestQuery("$1"), time.Now().Add(-keep).UnixNano()).Scan(&oldest)
	return oldest, err
}

func (d sqliteFile) size() string {
	return `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`
}

func (d sqliteFile) storageError(err error) error {
	switch codeOf(err) {
	case sqlite3.SQLITE_FULL:
		return storage.ErrFull
	case sqlite3.SQLITE_TOOBIG:
		return storage.ErrTooLarge
	}
	return nil
}

func (d sqliteFile) problem(err error) string {
	switch codeOf(err) {
	case 0:
		return ""
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT:
		return "the database is busy with other transactions"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "the database file is damaged"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
		return "the database file cannot be opened or written"
	}
	return "the database reported an error"
}

// retryable includes an attempt that its own deadline interrupted.
func (d sqliteFile) retryable(err error) bool {
	code := codeOf(err)
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_INTERRUPT || errors.Is(err, context.DeadlineExceeded)
}

// codeOf returns the primary SQLite result code of an error, or 0 if it has none.
func codeOf(err error) int {
	if fault := (*sqlite.Error)(nil); errors.As(err, &fault) {
		return fault.Code() & 0xff
	}
	return 0
}
