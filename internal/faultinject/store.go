// Package faultinject wraps a store for tests and injects faults: delays, errors, commits that succeed although they
// return an error, and watches that end or lose events.
//
// The faults are deterministic: a function, the Plan, chooses the fault of each call from the call and its number. No
// lock is held while the plan runs or a call is delayed.
package faultinject

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"orch.io/controlplane/storage"
)

// Op is the name of an operation.
type Op string

// The operations. OpRecord is a record of a scan. OpEvent is an event of the commit that a watch is about to yield;
// if its fault ends the watch, the whole commit is lost.
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

// Call is a call, record or event for which the plan chooses a fault.
type Call struct {
	Op Op
	// N counts the calls with this Op from 1.
	N int
	// Key is the key, the prefix or the name of the stamp. For a commit it is the key of the first write.
	Key string
	// At is the revision of a read, a record, an event or a compaction, or the revision after which a watch
	// begins.
	At storage.Revision
	// Writes are the writes of OpCommit, at least one.
	Writes []storage.Write
}

// Fault is the fault of a call. The zero value means no fault.
type Fault struct {
	// Delay and Wait delay the call: first for the duration, then until the channel is closed. If the context of
	// the call ends during that, the call fails with its error.
	Delay time.Duration
	Wait  <-chan struct{}
	// Err is the error that the call returns or yields. For OpRecord and OpEvent it ends the sequence, except a
	// *storage.DamagedError for OpRecord, which replaces only that record.
	Err error
	// Done executes the call before Err is returned, so the call succeeds although its caller gets an error.
	Done bool
	// Drop leaves the event or the record out.
	Drop bool
	// End ends a watch without an error, as if its context had ended.
	End bool
}

// Plan returns the fault of a call. It must be safe for concurrent use.
type Plan func(Call) Fault

// Store is a storage.Backend that wraps another Backend. It also implements storage.StampReader, Checker, Sequencer and
// Shared.
type Store struct {
	inner storage.Backend

	mu     sync.Mutex
	plan   Plan
	counts map[Op]int
	watch  *ending // shared by all running watches
}

// ending ends the watches that share it when closed is closed. err is set before.
type ending struct {
	closed chan struct{}
	err    error
}

var (
	_ storage.Backend = (*Store)(nil)
	_ storage.Stamper = (*Store)(nil)
	_ storage.Checker = (*Store)(nil)
)

// Wrap returns a store that passes calls to b with the faults of plan. A nil plan means no faults. Close closes b.
func Wrap(b storage.Backend, plan Plan) *Store {
	return &Store{
		inner:  b,
		plan:   plan,
		counts: make(map[Op]int),
		watch:  &ending{closed: make(chan struct{})},
	}
}

// SetPlan replaces the plan for later calls; nil means no faults. The numbers of the calls continue.
func (s *Store) SetPlan(plan Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = plan
}

// EndWatches ends all running watches with err, or without an error if err is nil. It does not affect later watches.
func (s *Store) EndWatches(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.err = err
	close(s.watch.closed)
	s.watch = &ending{closed: make(chan struct{})}
}

// Count returns the number of calls with op.
func (s *Store) Count(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[op]
}

// meet gets the fault of a call from the plan and delays the call accordingly. It fails if the context ends during the
// delay.
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

// call executes run with the fault of c.
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

// CommitSequence implements storage.Sequencer. For the plan it is a single OpCommit with the first write.
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

// Stamp implements storage.Stamper. If the wrapped store is not a Stamper, it returns value.
func (s *Store) Stamp(ctx context.Context, name, value string) (string, error) {
	return call(ctx, s, Call{Op: OpStamp, Key: name}, func() (string, error) {
		if inner, ok := s.inner.(storage.Stamper); ok {
			return inner.Stamp(ctx, name, value)
		}
		return value, nil
	})
}

// Stamps implements storage.StampReader. If the wrapped store is not a StampReader, it returns nil.
func (s *Store) Stamps(ctx context.Context) (map[string]string, error) {
	return call(ctx, s, Call{Op: OpStamp}, func() (map[string]string, error) {
		if inner, ok := s.inner.(storage.StampReader); ok {
			return inner.Stamps(ctx)
		}
		return nil, nil
	})
}

// Check implements storage.Checker. If the wrapped store is not a Checker, it returns nil.
func (s *Store) Check(ctx context.Context) error {
	if inner, ok := s.inner.(storage.Checker); ok {
		return inner.Check(ctx)
	}
	return ctx.Err()
}

// Missing implements storage.Checker. If the wrapped store is not a Checker, it returns 0, 0.
func (s *Store) Missing() (damaged, losses int) {
	if inner, ok := s.inner.(storage.Checker); ok {
		return inner.Missing()
	}
	return 0, 0
}

// Shared implements storage.Shared with the result of the wrapped store.
func (s *Store) Shared() bool {
	shared, ok := s.inner.(storage.Shared)
	return ok && shared.Shared()
}

// Close closes the wrapped store.
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
