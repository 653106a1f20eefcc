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

// Options configures a Store. Exactly one of File and Postgres must be set.
type Options struct {
	// File is the path of an SQLite database. SQLite keeps two more files next to it.
	File string
	// Postgres is the address of a PostgreSQL database, either a URL such as
	// postgres://user@10.0.0.1/name?sslmode=verify-full or keywords and values. If it names several
	// servers, the store uses the primary.
	Postgres string
	// Schema is the PostgreSQL schema of the tables, controlplane by default. It is created if it does
	// not exist.
	Schema string
	// Retain is how long a replaced record stays readable. 0 means 5 minutes. If it is negative, the
	// history is never compacted.
	Retain time.Duration
	// Logger receives the log of the store. If it is nil, nothing is logged.
	Logger *slog.Logger
}

// Limits of connections and time.
const (
	maxReaders    = 8
	callTime      = 20 * time.Second // for all attempts of a call
	attemptTime   = 10 * time.Second // for one attempt
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
	readers chan struct{}        // has an element for each running read
	loss    atomic.Pointer[loss] // nil as long as the store is usable
	marked  atomic.Int64         // the latest state.lost that was read
	history int64                // state.history at the time of Open

	lifetime    context.Context // ended by Close
	endLifetime context.CancelFunc
	background  sync.WaitGroup // the goroutines of the store

	mu        sync.Mutex
	closed    bool
	calls     sync.WaitGroup   // running calls; Add is called with mu held, and not after closed is set
	shown     marks            // guarded by mu: commits shown to callers and not yet confirmed by a later read
	known     storage.Revision // guarded by mu: the newest announced revision
	committed chan struct{}    // guarded by mu: closed and replaced when known increases
	next      *revisionQuery   // guarded by mu: the query that has not begun

	queryMu sync.Mutex // held while a revisionQuery runs
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

// Shared implements storage.Shared. It returns true: any number of processes may open the same
// database.
func (*Store) Shared() bool { return true }

// Open opens the store in a database, and creates its tables if they do not exist. The caller must call
// Close.
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
		readers: make(chan struct{}, maxReaders), committed: make(chan struct{})}
	s.lifetime, s.endLifetime = context.WithCancel(context.Background())
	if s.pools, err = s.open(ctx); err == nil {
		err = s.begin(ctx)
	}
	if err == nil && s.retain > 0 {
		err = s.compactOld(ctx) // history that expired while the store was closed
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open storage in %s: %w", s.where(), err), s.Close())
	}
	s.background.Go(s.write)
	s.background.Go(s.poll)
	s.background.Go(s.receive)
	if s.retain > 0 {
		s.background.Go(s.compactLoop)
	}
	return s, nil
}

func (o Options) dialect() (dialect, error) {
	switch {
	case o.File != "" && o.Postgres != "":
		return nil, errors.New("both Options.File and Options.Postgres are set")
	case o.File != "":
		return sqliteFile{o.File}, nil
	case o.Postgres != "":
		return newPostgres(o.Postgres, o.Schema)
	}
	return nil, errors.New("neither Options.File nor Options.Postgres is set")
}

// enter begins a call and returns its context, which also ends when the store is closed. The caller
// must call leave; Close waits for it.
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
	stop := context.AfterFunc(s.lifetime, cancel)
	return ctx, func() { stop(); cancel(); s.calls.Done() }, nil
}

// call calls f, which must be idempotent, with retries.
func (s *Store) call(ctx context.Context, f func(ctx context.Context) error) error {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if l := s.loss.Load(); l != nil {
		return l.err
	}
	return s.callerError(ctx, s.retry(inner, f))
}

// retry calls f until it succeeds, fails with an error that is not retryable, or callTime has passed.
func (s *Store) retry(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for pause := pauseTime; ; pause = min(2*pause, longPauseTime) {
		attempt, done := context.WithTimeout(ctx, attemptTime)
		err := f(attempt)
		done()
		if err == nil || ctx.Err() != nil || errors.Is(err, errUnknown) || !s.retryable(err) {
			return err
		}
		s.logger.Debug("database did not answer; trying again", "error", err)
		if !wait(ctx, pause) {
			return err
		}
	}
}

// wait waits for d. It reports false if the context ends first.
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

// unansweredError is the error of a call to which the database did not answer in time. It does not wrap
// the error of the context, which belongs to the store: callers would take it for their own.
type unansweredError struct{ last error }

func (e *unansweredError) Error() string { return "the database did not answer: " + e.last.Error() }

// callerError converts an error of the database to the errors of storage.Backend. caller is the context
// of the caller, whose error takes precedence.
func (s *Store) callerError(caller context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case caller.Err() != nil:
		return caller.Err()
	case s.lifetime.Err() != nil:
		return storage.ErrClosed
	}
	if named := s.storageError(err); named != nil {
		return fmt.Errorf("%w: %w", named, err)
	}
	kind := s.problem(err)
	switch {
	case s.retryable(err) || errors.Is(err, context.DeadlineExceeded):
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

// Missing implements storage.Checker. There are no damaged records, because a database returns no
// record that it cannot read.
func (s *Store) Missing() (damaged, losses int) {
	if s.loss.Load() != nil || s.marked.Load() != 0 {
		losses = 1
	}
	return 0, losses
}

// Size implements storage.Sizer.
func (s *Store) Size() (size int64) {
	err := s.call(s.lifetime, func(ctx context.Context) error {
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
	s.endLifetime()
	s.calls.Wait()
	s.background.Wait()
	return s.pools.close()
}
