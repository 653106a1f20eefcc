package sqlstore

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"orch.io/controlplane/storage"
)

// Options say where a Store is and how much history it keeps.
type Options struct {
	// File is the path of the database. SQLite keeps two more files beside it.
	File string
	// Retain is how long a replaced record stays readable; 0 means 5 minutes, less
	// than 0 forever.
	Retain time.Duration
}

// Bounds of one database, and how often it is looked at.
const (
	maxReaders = 8
	// lookEvery is how often a store looks whether another process has committed.
	lookEvery = 100 * time.Millisecond
	// forgetPart of Retain is how often history is forgotten.
	forgetPart = 64
	// busyMillis is how long a transaction waits for one of another process.
	busyMillis = 10_000
	// walPages is how long the write-ahead log grows before it is put into the file.
	walPages = 16 << 10
)

// Store is a storage.Backend in an SQLite database. It also implements
// storage.Stamper and storage.Historian.
type Store struct {
	retain time.Duration
	reads  *sql.DB
	writes *sql.DB // of one connection, whose transactions take the lock for writing at once
	queue  chan *commit
	life   context.Context // ends with the store
	end    context.CancelFunc
	done   sync.WaitGroup // the store's own goroutines

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // added to under mu, while the store is not closed
	news   chan struct{}  // closed at the next commit
}

var (
	_ storage.Backend   = (*Store)(nil)
	_ storage.Stamper   = (*Store)(nil)
	_ storage.Historian = (*Store)(nil)
)

//go:embed schema.sql
var schema string

// Open opens the store in a file, which is made if it does not exist.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.File == "" {
		return nil, errors.New("open storage: no file is given")
	}
	if o.Retain == 0 {
		o.Retain = 5 * time.Minute
	}
	s := &Store{retain: o.Retain, queue: make(chan *commit, maxTogether), news: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.start(ctx, o.File); err != nil {
		return nil, errors.Join(fmt.Errorf("open storage in %s: %w", o.File, err), s.Close())
	}
	s.done.Go(s.write)
	s.done.Go(s.look)
	if s.retain > 0 {
		s.done.Go(s.forget)
	}
	return s, nil
}

// start opens the database and forgets what became too old meanwhile.
func (s *Store) start(ctx context.Context, file string) (err error) {
	if s.writes, err = open(file, "immediate", 1); err != nil {
		return err
	}
	if s.reads, err = open(file, "deferred", maxReaders); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil || s.retain < 0 {
		return err
	}
	return s.forgetOld(time.Now())
}

// prepare makes the tables. Who else opens a new file at the same moment holds it while its
// log is set up, and for that SQLite does not wait by itself.
func (s *Store) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busyMillis*time.Millisecond)
	defer cancel()
	for {
		_, err := s.writes.ExecContext(ctx, schema)
		fault := (*sqlite.Error)(nil)
		if !errors.As(err, &fault) || fault.Code()&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func open(file, lock string, connections int) (*sql.DB, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_txlock": {lock}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyMillis), "journal_mode(wal)", "synchronous(full)",
		fmt.Sprintf("wal_autocheckpoint(%d)", walPages),
	}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: file, RawQuery: q.Encode()}).String())
	if err == nil {
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
	}
	return db, err
}

// enter begins a call, which ends early if the store is closed; leave ends it.
func (s *Store) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, storage.ErrClosed
	}
	s.calls.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel(); s.calls.Done() }, nil
}

// told makes of an error of the database what the contract calls it. asked is the
// caller's own context.
func (s *Store) told(asked context.Context, err error) error {
	switch fault := (*sqlite.Error)(nil); {
	case err == nil:
		return nil
	case asked.Err() != nil:
		return asked.Err()
	case s.life.Err() != nil:
		return storage.ErrClosed
	case errors.As(err, &fault) && fault.Code()&0xff == sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	case errors.As(err, &fault) && fault.Code()&0xff == sqlite3.SQLITE_TOOBIG:
		return fmt.Errorf("%w: %w", storage.ErrTooLarge, err)
	}
	return err
}

// Stamp implements storage.Stamper.
func (s *Store) Stamp(ctx context.Context, name, value string) (string, error) {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if _, err := s.writes.ExecContext(inner, `INSERT INTO stamps VALUES (?, ?) ON CONFLICT DO NOTHING`, name, value); err != nil {
		return "", s.told(ctx, err)
	}
	err = s.writes.QueryRowContext(inner, `SELECT value FROM stamps WHERE name = ?`, name).Scan(&value)
	return value, s.told(ctx, err)
}

// Close implements storage.Backend.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.calls.Wait()
	s.done.Wait()
	var errs []error
	for _, db := range []*sql.DB{s.reads, s.writes} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
