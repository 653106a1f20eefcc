// Package faultinject wraps a store and makes it fail as its user says: late
// answers, errors, commits that happened although an error was returned, and
// watches that end or lose events.
//
// Nothing in it is random. What happens to a call is decided by a function
// that sees the call and its number. It is called, and waits, without a lock.
package faultinject

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"orch.io/controlplane/storage"
)

// Op names what is about to happen.
type Op string

// The operations. OpRecord is one step of a scan; OpEvent is one event of the commit
// that a watch is about to yield, so that what ends the watch loses all of that.
const (
	OpGet      Op = "get"
	OpScan     Op = "scan"
	OpRecord   Op = "record"
	OpCommit   Op = "commit"
	OpWatch    Op = "watch"
	OpEvent    Op = "event"
	OpRevision Op = "revision"
	OpCompact  Op = "compact"
	OpStamp    Op = "stamp"
)

// Call is one thing that is about to happen.
type Call struct {
	Op Op
	// N counts the calls with this Op from 1.
	N int
	// Key is the key, the prefix or the name of the stamp; of a commit of several
	// writes that of the first.
	Key string
	// At is the revision of a read, a record or an event, or the one after
	// which a watch begins.
	At storage.Revision
	// Writes are what OpCommit is given, at least one.
	Writes []storage.Write
}

// Fault is what happens to a call. The zero value lets it pass.
type Fault struct {
	// Delay and Wait come first: time passes, then the channel is closed. The
	// end of the call's context ends both.
	Delay time.Duration
	Wait  <-chan struct{}
	// Err is returned or yielded. For OpRecord and OpEvent it is the last
	// thing that is yielded, but a *storage.DamagedError stands for its record
	// alone.
	Err error
	// Done lets the call happen before Err is returned, which leaves the
	// caller in doubt.
	Done bool
	// Drop loses an event or a record.
	Drop bool
	// End ends a watch without an error, as if its context had ended.
	End bool
}

// Plan decides about a call. It may be called by many goroutines at once.
type Plan func(Call) Fault

// Store is a storage.Backend, and a storage.Stamper, over another one.
type Store struct {
	inner storage.Backend

	mu     sync.Mutex
	plan   Plan
	counts map[Op]int
	watch  *ending // of the watches that run now
}

// ending ends the watches that hold it.
type ending struct {
	closed chan struct{}
	err    error
}

var (
	_ storage.Backend = (*Store)(nil)
	_ storage.Stamper = (*Store)(nil)
	_ storage.Checker = (*Store)(nil)
)

// Wrap returns b behind plan; nil lets everything pass. Close closes b.
func Wrap(b storage.Backend, plan Plan) *Store {
	return &Store{
		inner:  b,
		plan:   plan,
		counts: make(map[Op]int),
		watch:  &ending{closed: make(chan struct{})},
	}
}

// SetPlan replaces the plan for the calls to come; nil lets everything pass.
// The numbers of the calls go on.
func (s *Store) SetPlan(plan Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = plan
}

// EndWatches ends every watch that runs now: with err, or, if that is nil,
// without an error. Later watches are not concerned.
func (s *Store) EndWatches(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.err = err
	close(s.watch.closed)
	s.watch = &ending{closed: make(chan struct{})}
}

// Count returns how many calls with op were made.
func (s *Store) Count(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[op]
}

// meet asks the plan about a call and waits as it says.
func (s *Store) meet(ctx context.Context, c Call) (Fault, error) {
	s.mu.Lock()
	s.counts[c.Op]++
	c.N = s.counts[c.Op]
	plan := s.plan
	s.mu.Unlock()
	if plan == nil {
		return Fault{}, nil
	}
	f := plan(c)
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return f, ctx.Err()
		}
	}
	if f.Wait != nil {
		select {
		case <-f.Wait:
		case <-ctx.Done():
			return f, ctx.Err()
		}
	}
	return f, nil
}

// call runs one operation behind the plan.
func call[T any](ctx context.Context, s *Store, c Call, run func() (T, error)) (T, error) {
	var none T
	f, err := s.meet(ctx, c)
	if err != nil {
		return none, err
	}
	if f.Err == nil {
		return run()
	}
	if f.Done {
		if _, err := run(); err != nil {
			return none, err
		}
	}
	return none, f.Err
}

// Get implements storage.Backend.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	return call(ctx, s, Call{Op: OpGet, Key: key, At: at}, func() (storage.Record, error) {
		return s.inner.Get(ctx, key, at)
	})
}

// Commit implements storage.Backend.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if len(ws) == 0 {
		return s.inner.Commit(ctx)
	}
	return call(ctx, s, Call{Op: OpCommit, Key: ws[0].Key, Writes: ws}, func() (storage.Revision, error) {
		return s.inner.Commit(ctx, ws...)
	})
}

// CommitSequence implements storage.Sequencer; the plan sees one commit.
func (s *Store) CommitSequence(ctx context.Context, first storage.Write, then ...[]byte) ([]storage.Revision, error) {
	return call(ctx, s, Call{Op: OpCommit, Key: first.Key, Writes: []storage.Write{first}}, func() ([]storage.Revision, error) {
		return storage.CommitSequence(ctx, s.inner, first, then...)
	})
}

// Revision implements storage.Backend.
func (s *Store) Revision(ctx context.Context) (storage.Revision, error) {
	return call(ctx, s, Call{Op: OpRevision}, func() (storage.Revision, error) {
		return s.inner.Revision(ctx)
	})
}

// Compact implements storage.Backend.
func (s *Store) Compact(ctx context.Context, before storage.Revision) error {
	_, err := call(ctx, s, Call{Op: OpCompact, At: before}, func() (struct{}, error) {
		return struct{}{}, s.inner.Compact(ctx, before)
	})
	return err
}

// Stamp implements storage.Stamper. If the store below keeps no stamps it
// returns value.
func (s *Store) Stamp(ctx context.Context, name, value string) (string, error) {
	return call(ctx, s, Call{Op: OpStamp, Key: name}, func() (string, error) {
		if inner, ok := s.inner.(storage.Stamper); ok {
			return inner.Stamp(ctx, name, value)
		}
		return value, nil
	})
}

// Stamps implements storage.StampReader. If the stamps of the store below cannot be listed
// there are none.
func (s *Store) Stamps(ctx context.Context) (map[string]string, error) {
	return call(ctx, s, Call{Op: OpStamp}, func() (map[string]string, error) {
		if inner, ok := s.inner.(storage.StampReader); ok {
			return inner.Stamps(ctx)
		}
		return nil, nil
	})
}

// Check implements storage.Checker. A store that does not notice losses has none.
func (s *Store) Check(ctx context.Context) error {
	if inner, ok := s.inner.(storage.Checker); ok {
		return inner.Check(ctx)
	}
	return ctx.Err()
}

// Missing implements storage.Checker.
func (s *Store) Missing() (damaged, losses int) {
	if inner, ok := s.inner.(storage.Checker); ok {
		return inner.Missing()
	}
	return 0, 0
}

// Shared implements storage.Shared, as the store below it does.
func (s *Store) Shared() bool {
	shared, ok := s.inner.(storage.Shared)
	return ok && shared.Shared()
}

// Close closes the store below.
func (s *Store) Close() error { return s.inner.Close() }

// Scan implements storage.Backend.
func (s *Store) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	type scan struct {
		at      storage.Revision
		records iter.Seq2[storage.Record, error]
	}
	below, err := call(ctx, s, Call{Op: OpScan, Key: prefix, At: at}, func() (scan, error) {
		at, records, err := s.inner.Scan(ctx, prefix, start, at)
		return scan{at, records}, err
	})
	if err != nil {
		return 0, nil, err
	}
	return below.at, func(yield func(storage.Record, error) bool) {
		for rec, err := range below.records {
			if damaged := (*storage.DamagedError)(nil); errors.As(err, &damaged) {
				if !yield(rec, err) {
					return
				}
				continue
			}
			if err != nil {
				yield(rec, err)
				return
			}
			f, err := s.meet(ctx, Call{Op: OpRecord, Key: rec.Key, At: rec.Revision})
			if err == nil {
				err = f.Err
			}
			if damaged := (*storage.DamagedError)(nil); errors.As(err, &damaged) {
				if !yield(storage.Record{Key: damaged.Key, Revision: damaged.Revision}, err) {
					return
				}
				continue
			}
			if err != nil {
				yield(storage.Record{}, err)
				return
			}
			if !f.Drop && !yield(rec, nil) {
				return
			}
		}
	}, nil
}
