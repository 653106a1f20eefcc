// Package election lets one of several candidates lead at a time, by a Lease that the
// leader renews.
//
// No clock is compared with another one: a candidate counts from when it saw the lease
// change, the leader from before it asked for the renewal. The leader stops after two thirds
// of the duration without one, so that a third is left for what it does to end before another
// one leads. A leader whose process or machine slept may go on for a moment; who cannot bear
// that has what it writes depend on its term, see Record.Put.
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

// ErrLost says that leading ended because the lease could not be renewed, or another
// candidate took it.
var ErrLost = errors.New("the lease is lost")

// Candidate is one of those who may lead. All fields but the functions must be set.
type Candidate struct {
	Record   Record
	Identity string        // which no other candidate has
	Duration time.Duration // of the lease, in whole seconds
	Longest  time.Duration // how long a lease counts at most that is not renewed, whatever it says

	Log  *slog.Logger
	Seen func(holder string) // is told who holds the lease, whenever that was found out, "" when this candidate does not any more; nil: nobody is
	Slow func()              // is called when a renewal finds the lease changed; nil: nobody is told

	// Vacant runs as long as nobody can be elected for want of room for the lease; nil: nothing
	// does. It ends with its context, and may run beside a leader and in several candidates.
	Vacant func(ctx context.Context)
}

// term is a candidacy on its way. It is used by one goroutine at a time.
type term struct {
	*Candidate
	held    *Lease    // as it was last seen
	seen    time.Time // since when it has been so
	renewed time.Time // when the last renewal began that succeeded
	unsure  bool      // it may have been won: there was no answer
}

// Run waits until the candidate may lead and calls lead. When lead returns, it gives the
// lease up and returns the error of lead. When the lease is lost, the context of lead ends,
// and Run returns ErrLost as soon as lead has returned. When ctx ends, so does the context of
// lead; the lease is held until lead has returned, so that nobody else leads before.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	t := &term{Candidate: c}
	if !t.stand(ctx) {
		return nil
	}
	c.Log.Info("leading", "transitions", t.held.Spec.LeaseTransitions)
	return t.lead(ctx, lead)
}

// stand campaigns until the candidate has won or the context ends, and reports whether it
// has won.
func (t *term) stand(ctx context.Context) bool {
	v := &vacancy{work: t.Vacant}
	defer v.fill()
	for failing := false; ; {
		was := t.held
		won, err := t.campaign(ctx)
		switch {
		case won:
			return true
		case err == nil: // somebody leads
			v.fill()
		case errors.Is(err, ErrNoRoom):
			v.begin(ctx)
		}
		fails := err != nil && !errors.Is(err, ErrTaken)
		if fails && !failing && ctx.Err() == nil {
			t.Log.Warn("asking for the lease fails", "error", err)
		}
		failing = fails
		t.rest(ctx, err, t.held == was)
		if ctx.Err() != nil {
			if t.unsure {
				t.release(ctx)
			}
			return false
		}
	}
}

// vacancy is work that is done while nobody can lead. It is used by one goroutine.
type vacancy struct {
	work  func(ctx context.Context) // nil: there is none
	end   context.CancelFunc        // nil: it does not run
	ended sync.WaitGroup
}

func (v *vacancy) begin(ctx context.Context) {
	if v.work == nil || v.end != nil {
		return
	}
	ctx, v.end = context.WithCancel(ctx)
	v.ended.Go(func() { v.work(ctx) })
}

// fill ends the work, and returns when it has ended.
func (v *vacancy) fill() {
	if v.end != nil {
		v.end()
		v.ended.Wait()
		v.end = nil
	}
}

// rest comes after a campaign that was not won. It waits until another one may be: the lease
// is another one, or has run out. After an error there is a pause, and before it is waited for
// the same lease once more: not all that was told of was a change.
func (t *term) rest(ctx context.Context, err error, same bool) {
	switch {
	case errors.Is(err, ErrTaken): // it is known soon who was faster
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

// pause lasts for half of a time or longer, or until the context ends.
func pause(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(longest/2 + rand.N(longest/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// await waits until the lease that was seen may be another one or has run out, and reports
// whether it could.
func (t *term) await(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, t.free())
	defer cancel()
	return t.Record.Await(ctx, t.held) == nil || ctx.Err() != nil
}

// free is when the lease that was seen has run out, by this clock: that of the holder may
// go wrong.
func (t *term) free() time.Time {
	if t.held.Spec.HolderIdentity == "" || t.held.Spec.HolderIdentity == t.Identity {
		return time.Time{}
	}
	lasts := time.Duration(t.held.Spec.LeaseDurationSeconds) * time.Second
	if lasts <= 0 {
		lasts = t.Duration
	}
	return t.seen.Add(min(lasts, t.Longest))
}

// end is when leading ends if the lease is not renewed before.
func (t *term) end() time.Time { return t.renewed.Add(t.Duration * 2 / 3) }

// campaign takes the lease if it is free, and reports whether it did, in time to lead. If it
// did not, and nothing failed, the lease that was seen is another candidate's.
func (t *term) campaign(ctx context.Context) (bool, error) {
	now := time.Now() // before all that the store does: others count from when they see it
	ctx, cancel := context.WithDeadline(ctx, now.Add(t.Duration/3))
	defer cancel()
	found, err := t.Record.Get(ctx)
	if err != nil {
		return false, err
	}
	t.unsure = false
	next := &Lease{}
	if found != nil {
		if t.held == nil || t.held.ResourceVersion != found.ResourceVersion || t.held.UID != found.UID {
			t.held, t.seen = found, time.Now() // after what the holder did
		}
		if now.Before(t.free()) {
			t.tell(found.Spec.HolderIdentity)
			return false, nil
		}
		copied := *found
		next = &copied
	}
	next.sign(t.Identity, t.Duration, now)
	stored, err := t.Record.Put(ctx, next, true)
	if err != nil {
		t.unsure = !errors.Is(err, ErrTaken)
		return false, err
	}
	t.held, t.renewed = stored, now
	t.tell(t.Identity)
	return true, nil
}

func (t *term) tell(holder string) {
	if t.Seen != nil {
		t.Seen(holder)
	}
}

// lead calls what leads and renews the lease until that has returned.
func (t *term) lead(ctx context.Context, lead func(context.Context) error) error {
	leading, stop := context.WithCancel(ctx)
	defer stop()
	result := make(chan error, 1)
	go func() { result <- lead(leading) }()
	holding := context.WithoutCancel(ctx) // until lead has returned
	tick := time.NewTicker(t.Duration / 5)
	defer tick.Stop()
	for held := true; held; {
		select {
		case err := <-result:
			t.release(ctx)
			return err
		case <-tick.C:
			held = t.renew(holding)
		case <-time.After(time.Until(t.end())):
			held = false
		}
	}
	t.Log.Warn("the lease is lost")
	t.tell("")
	stop()
	return errors.Join(ErrLost, <-result)
}

// changes is how often a lease is written that somebody else changes, who leaves it to the
// candidate.
const changes = 3

// renew renews the lease, and reports whether the candidate may still lead.
func (t *term) renew(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, t.end())
	defer cancel()
	for range changes {
		now := time.Now()
		next := *t.held
		next.sign(t.Identity, t.Duration, now)
		stored, err := t.Record.Put(ctx, &next, false)
		if err == nil {
			t.held, t.renewed = stored, now
			return true
		}
		if !errors.Is(err, ErrTaken) {
			t.Log.Warn("renewing the lease failed", "error", err)
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
	return time.Now().Before(t.end())
}

// release gives the lease up if it is the candidate's, as a write may have made it that had no
// answer, so that nobody has to wait. If that fails, they wait.
func (t *term) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Duration/3)
	defer cancel()
	t.tell("")
	var err error
	for range changes {
		var held *Lease
		if held, err = t.Record.Get(ctx); err != nil {
			break
		}
		if held == nil || held.Spec.HolderIdentity != t.Identity {
			return
		}
		now := meta.NewMicroTime(time.Now())
		held.Spec.HolderIdentity, held.Spec.LeaseDurationSeconds, held.Spec.RenewTime, held.Spec.AcquireTime = "", 1, now, now
		if _, err = t.Record.Put(ctx, held, false); !errors.Is(err, ErrTaken) {
			break
		}
	}
	if err != nil {
		t.Log.Warn("giving the lease up failed", "error", err)
		return
	}
	t.Log.Info("gave the lease up")
}
