// Package election elects one of several candidates as leader. The leader holds a Lease and renews
// it.
//
// Clocks are never compared. A candidate measures the duration of a lease from the time at which it
// saw the lease change; the leader measures it from before it requested the renewal. The leader
// stops after two thirds of the duration without a renewal, so that a third is left for its running
// work to end before another candidate leads. If its process or machine was suspended, a leader may
// continue for a moment after that. Work that must not overlap with the next leader has to make its
// writes depend on the term, see Record.Put.
package election

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
)

// ErrLost reports that leading ended because the lease could not be renewed, or another candidate
// took it.
var ErrLost = errors.New("lost the lease")

// Candidate takes part in the election. All fields except Seen, Slow and Vacant must be set.
type Candidate struct {
	Record      Record
	Identity    string        // must differ from that of all other candidates
	Duration    time.Duration // of the lease, in whole seconds
	MaxDuration time.Duration // limits the duration of leases that other candidates hold, whatever they say

	Log *slog.Logger

	// Seen is called with the holder of the lease when an attempt to acquire the lease finds it,
	// and with "" when this candidate stops holding the lease. It may be nil.
	Seen func(holder string)

	// Slow is called when a renewal finds that another client has changed the lease. It may be nil.
	Slow func()

	// Vacant runs while no candidate can be elected because the store has no room for the lease.
	// It must return when its context ends. It may run in several candidates at the same time, and
	// at the same time as a leader. It may be nil.
	Vacant func(ctx context.Context)
}

// candidacy is the state of a call of Run. It is used by one goroutine at a time.
type candidacy struct {
	*Candidate
	held    *Lease    // the lease as last seen, regardless of its holder
	seen    time.Time // when held was first seen in this version
	renewed time.Time // when the last successful renewal began
	mayHold bool      // a write of the lease had no answer, so this candidate may hold it
}

// Run waits until the candidate is elected, and then calls lead. When lead returns, Run releases
// the lease and returns the error of lead. If the lease is lost, the context of lead ends, and Run
// returns ErrLost after lead has returned. If ctx ends, the context of lead ends, too; the lease is
// held until lead has returned, so that no other candidate leads before. If ctx ends before the
// election, Run returns nil.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	t := &candidacy{Candidate: c}
	if !t.acquire(ctx) {
		return nil
	}
	c.Log.Info("leading", "transitions", t.held.Spec.LeaseTransitions)
	return t.lead(ctx, lead)
}

// acquire tries to acquire the lease until it succeeds or ctx ends, and reports whether it
// succeeded.
func (t *candidacy) acquire(ctx context.Context) bool {
	v := &vacancy{work: t.Vacant}
	defer v.stop()
	for failing := false; ; {
		was := t.held
		won, err := t.tryAcquire(ctx)
		switch {
		case won:
			return true
		case err == nil: // another candidate leads
			v.stop()
		case errors.Is(err, ErrStoreFull):
			v.start(ctx)
		}
		fails := err != nil && !errors.Is(err, ErrConflict)
		if fails && !failing && ctx.Err() == nil {
			t.Log.Warn("failed to acquire the lease", "error", err)
		}
		failing = fails
		t.waitForRetry(ctx, err, t.held == was)
		if ctx.Err() != nil {
			if t.mayHold {
				t.release(ctx)
			}
			return false
		}
	}
}

// vacancy runs Candidate.Vacant. It is used by one goroutine.
type vacancy struct {
	work  func(ctx context.Context) // may be nil
	end   context.CancelFunc        // nil if the work is not running
	ended sync.WaitGroup
}

// start starts the work unless it is running.
func (v *vacancy) start(ctx context.Context) {
	if v.work == nil || v.end != nil {
		return
	}
	ctx, v.end = context.WithCancel(ctx)
	v.ended.Go(func() { v.work(ctx) })
}

// stop stops the work and waits until it has ended.
func (v *vacancy) stop() {
	if v.end != nil {
		v.end()
		v.ended.Wait()
		v.end = nil
	}
}

// waitForRetry waits after a failed attempt until another attempt may succeed: the lease has
// changed or expired. After an error it pauses. It also pauses if same is true, the lease did not
// change since the attempt before, because Record.Await may return without a change.
func (t *candidacy) waitForRetry(ctx context.Context, err error, same bool) {
	switch {
	case errors.Is(err, ErrConflict): // the new holder can be read soon
		pause(ctx, t.Duration/500)
	case err != nil:
		pause(ctx, t.Duration/5)
	default:
		if same {
			pause(ctx, t.Duration/50)
		}
		if !t.await(ctx) {
			pause(ctx, t.Duration/5)
		}
	}
}

// pause waits for a random time between half of longest and longest, or until ctx ends.
func pause(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(longest/2 + rand.N(longest/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// await waits until the lease may have changed or expires. It reports false if Record.Await failed.
func (t *candidacy) await(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, t.expiry())
	defer cancel()
	return t.Record.Await(ctx, t.held) == nil || ctx.Err() != nil
}

// expiry returns when the lease that was seen expires, by the local clock, because the holder's
// clock may be wrong. It is the zero time if the lease is free or this candidate's own.
func (t *candidacy) expiry() time.Time {
	if t.held.Spec.HolderIdentity == "" || t.held.Spec.HolderIdentity == t.Identity {
		return time.Time{}
	}
	duration := time.Duration(t.held.Spec.LeaseDurationSeconds) * time.Second
	if duration <= 0 {
		duration = t.Duration
	}
	return t.seen.Add(min(duration, t.MaxDuration))
}

// deadline returns when this candidate must stop leading unless it renews the lease before.
func (t *candidacy) deadline() time.Time { return t.renewed.Add(t.Duration * 2 / 3) }

// tryAcquire acquires the lease if it is free, and reports whether it did. If it did not and err is
// nil, another candidate holds the lease.
func (t *candidacy) tryAcquire(ctx context.Context) (bool, error) {
	now := time.Now() // before the write, because other candidates measure from when they see it
	ctx, cancel := context.WithDeadline(ctx, now.Add(t.Duration/3))
	defer cancel()
	found, err := t.Record.Get(ctx)
	if err != nil {
		return false, err
	}
	t.mayHold = false
	next := &Lease{}
	if found != nil {
		if t.held == nil || t.held.ResourceVersion != found.ResourceVersion || t.held.UID != found.UID {
			t.held, t.seen = found, time.Now() // after the holder's write
		}
		if now.Before(t.expiry()) {
			t.notify(found.Spec.HolderIdentity)
			return false, nil
		}
		copied := *found
		next = &copied
	}
	next.assign(t.Identity, t.Duration, now)
	stored, err := t.Record.Put(ctx, next, true)
	if err != nil {
		t.mayHold = !errors.Is(err, ErrConflict)
		return false, err
	}
	t.held, t.renewed = stored, now
	t.notify(t.Identity)
	return true, nil
}

// notify calls Seen.
func (t *candidacy) notify(holder string) {
	if t.Seen != nil {
		t.Seen(holder)
	}
}

// lead runs the leader's function and renews the lease until it has returned.
func (t *candidacy) lead(ctx context.Context, lead func(context.Context) error) error {
	leading, stop := context.WithCancel(ctx)
	defer stop()
	result := make(chan error, 1)
	go func() { result <- lead(leading) }()
	holding := context.WithoutCancel(ctx) // the lease is renewed until lead has returned
	tick := time.NewTicker(t.Duration / 5)
	defer tick.Stop()
	for held := true; held; {
		select {
		case err := <-result:
			t.release(ctx)
			return err
		case <-tick.C:
			held = t.renew(holding)
		case <-time.After(time.Until(t.deadline())):
			held = false
		}
	}
	t.Log.Warn("lost the lease")
	t.notify("")
	stop()
	return errors.Join(ErrLost, <-result)
}

// maxConflicts limits how often a write of the lease is retried after another client changed the
// lease without taking it.
const maxConflicts = 3

// renew renews the lease, and reports whether the candidate may still lead.
func (t *candidacy) renew(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, t.deadline())
	defer cancel()
	for range maxConflicts {
		now := time.Now()
		next := *t.held
		next.assign(t.Identity, t.Duration, now)
		stored, err := t.Record.Put(ctx, &next, false)
		if err == nil {
			t.held, t.renewed = stored, now
			return true
		}
		if !errors.Is(err, ErrConflict) {
			t.Log.Warn("failed to renew the lease", "error", err)
			break
		}
		if t.Slow != nil {
			t.Slow()
		}
		found, err := t.Record.Get(ctx)
		if err != nil {
			break
		}
		if found == nil || found.Spec.HolderIdentity != t.Identity {
			return false
		}
		t.held = found
	}
	return time.Now().Before(t.deadline())
}

// release releases the lease if this candidate holds it, so that the others need not wait until it
// expires. It reads the lease first, because a write without an answer may have succeeded. If
// release fails, the lease expires.
func (t *candidacy) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Duration/3)
	defer cancel()
	t.notify("")
	var err error
	for range maxConflicts {
		var held *Lease
		if held, err = t.Record.Get(ctx); err != nil {
			break
		}
		if held == nil || held.Spec.HolderIdentity != t.Identity {
			return
		}
		now := meta.NewMicroTime(time.Now())
		held.Spec.HolderIdentity, held.Spec.LeaseDurationSeconds, held.Spec.RenewTime, held.Spec.AcquireTime = "", 1, now, now
		if _, err = t.Record.Put(ctx, held, false); !errors.Is(err, ErrConflict) {
			break
		}
	}
	if err != nil {
		t.Log.Warn("failed to release the lease", "error", err)
		return
	}
	t.Log.Info("released the lease")
}
