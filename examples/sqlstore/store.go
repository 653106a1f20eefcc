package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/storage"
)

// Options say where a Store is and how much history it keeps. One of File and Postgres is
// given.
type Options struct {
	// File is the path of an SQLite database. SQLite keeps two more files beside it.
	File string
	// Postgres is the address of a PostgreSQL database, either as a URL such as
	// postgres://user@10.0.0.1/name?sslmode=verify-full or as keywords and values. Several
	// servers may be named; the one that is no standby is used.
	Postgres string
	// Schema is where the tables of a PostgreSQL database are. It is made if it does not
	// exist, and is controlplane if it is empty.
	Schema string
	// Retain is how long a replaced record stays readable; 0 means 5 minutes, less
	// than 0 forever.
	Retain time.Duration
	// Logger is told when the database does not answer; nil is nobody.
	Logger *slog.Logger
}

// Bounds of one database, in connections and time.
const (
	maxReaders    = 8
	callTime      = 20 * time.Second // of a whole call
	attemptTime   = 10 * time.Second // of one attempt
	pauseTime     = 50 * time.Millisecond
	longPauseTime = time.Second
)

// Store is a storage.Backend in an SQL database. It also implements storage.Stamper,
// storage.HistoryReader, storage.Checker, storage.Sizer, storage.Shared, storage.Importer and
// storage.StampReader.
type Store struct {
	dialect
	pools
	logger  *slog.Logger
	retain  time.Duration
	queue   chan *commit
	readers chan struct{}        // has an element for each read that goes on
	loss    atomic.Pointer[loss] // nil while the store is usable
	marked  atomic.Int64         // the last state.lost read
	history int64                // state.history when the store was opened

	life context.Context // ends with the store
	end  context.CancelFunc
	done sync.WaitGroup // the store's own goroutines

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup   // added to under mu, while the store is not closed
	shown  marks            // commits shown to callers that no later read has confirmed
	known  storage.Revision // the newest that was announced
	news   chan struct{}    // closed when there is one after known
	next   *question        // that has not been asked yet

	asking sync.Mutex // held while a question is asked
}

var (
	_ storage.Backend       = (*Store)(nil)
	_ storage.Stamper       = (*Store)(nil)
	_ storage.StampReader   = (*Store)(nil)
	_ storage.HistoryReader = (*Store)(nil)
	_ storage.Checker       = (*Store)(nil)
	_ storage.Sizer         = (*Store)(nil)
	_ storage.Shared        = (*Store)(nil)
)

// Shared implements storage.Shared: any number of processes may open a database.
func (*Store) Shared() bool { return true }

// Open opens the store in a database, whose tables are made if they do not exist.
func Open(ctx context.Context, o Options) (*Store, error) {
	d, err := o.dialect()
	if err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	if o.Retain == 0 {
		o.Retain = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{dialect: d, logger: o.Logger, retain: o.Retain, queue: make(chan *commit, maxTogether),
		readers: make(chan struct{}, maxReaders), news: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background())
	if s.pools, err = s.open(ctx); err == nil {
		err = s.begin(ctx)
	}
	if err == nil && s.retain > 0 {
		err = s.forgetOld(ctx) // what became too old meanwhile
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open storage in %s: %w", s.where(), err), s.Close())
	}
	s.done.Go(s.write)
	s.done.Go(s.look)
	s.done.Go(s.hear)
	if s.retain > 0 {
		s.done.Go(s.forget)
	}
	return s, nil
}

func (o Options) dialect() (dialect, error) {
	switch {
	case o.File != "" && o.Postgres != "":
		return nil, errors.New("both a file and a PostgreSQL database are given")
	case o.File != "":
		return sqliteFile{o.File}, nil
	case o.Postgres != "":
		return newPostgres(o.Postgres, o.Schema)
	}
	return nil, errors.New("no file and no PostgreSQL database is given")
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

// call makes a call that may be made several times.
func (s *Store) call(ctx context.Context, f func(ctx context.Context) error) error {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if l := s.loss.Load(); l != nil {
		return l.err
	}
	return s.told(ctx, s.again(inner, f))
}

// again calls f until it succeeds, fails for good, or its time is up.
func (s *Store) again(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for pause := pauseTime; ; pause = min(2*pause, longPauseTime) {
		attempt, done := context.WithTimeout(ctx, attemptTime)
		err := f(attempt)
		done()
		if err == nil || ctx.Err() != nil || errors.Is(err, errUnknown) || !s.passing(err) {
			return err
		}
		s.logger.Debug("the database did not answer, trying again", "error", err)
		if !wait(ctx, pause) {
			return err
		}
	}
}

// wait reports false if the context ends before the time has passed.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// unansweredError says that the database did not answer in time. It is not the error of
// the context that was for that, which callers would take for their own.
type unansweredError struct{ last error }

func (e *unansweredError) Error() string { return "the database did not answer: " + e.last.Error() }

// told makes of an error of the database what the contract calls it. asked is the
// caller's own context.
func (s *Store) told(asked context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case asked.Err() != nil:
		return asked.Err()
	case s.life.Err() != nil:
		return storage.ErrClosed
	}
	if named := s.fault(err); named != nil {
		return fmt.Errorf("%w: %w", named, err)
	}
	kind := s.trouble(err)
	switch {
	case s.passing(err) || errors.Is(err, context.DeadlineExceeded):
		return &storage.UnavailableError{Kind: cmp.Or(kind, "the database does not answer"), Err: &unansweredError{err}}
	case kind != "":
		return &storage.UnavailableError{Kind: kind, Err: err}
	}
	return err
}

// Stamp implements storage.Stamper.
func (s *Store) Stamp(ctx context.Context, name, value string) (there string, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		if _, err := s.upkeep.ExecContext(ctx, `INSERT INTO stamps VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, value); err != nil {
			return err
		}
		return s.upkeep.QueryRowContext(ctx, `SELECT value FROM stamps WHERE name = $1`, name).Scan(&there)
	})
	return there, err
}

// Stamps implements storage.StampReader.
func (s *Store) Stamps(ctx context.Context) (stamps map[string]string, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		stamps = map[string]string{}
		rows, err := s.reads.QueryContext(ctx, `SELECT name, value FROM stamps`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name, value string
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			stamps[name] = value
		}
		return rows.Err()
	})
	return stamps, err
}

// Missing implements storage.Checker. A database gives out no record that it cannot read.
func (s *Store) Missing() (damaged, losses int) {
	if s.loss.Load() != nil || s.marked.Load() != 0 {
		losses = 1
	}
	return 0, losses
}

// Size implements storage.Sizer.
func (s *Store) Size() (size int64) {
	err := s.call(s.life, func(ctx context.Context) error {
		return s.reads.QueryRowContext(ctx, s.size()).Scan(&size)
	})
	if err != nil {
		return 0
	}
	return size
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
	return s.pools.close()
}
