package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// Election lets one of several programs lead at a time, by a Lease that it renews. It
// agrees with elections of other clients that use the same Lease.
type Election struct {
	Conn Conn

	// Namespace and Name are those of the Lease.
	Namespace, Name string

	// Identity names this program among the others, no two of which may have the same;
	// empty is a random one.
	Identity string

	// Duration is after how long without renewal another program may lead, in whole
	// seconds; zero is 15 seconds. The lease is renewed five times in that. Leading ends
	// when it could not be for two thirds of it: a third is left for lead to return before
	// another program leads.
	Duration time.Duration
}

// ErrLost says that leading ended because the lease could not be renewed, or another
// program took it.
var ErrLost = errors.New("the lease is lost")

// lease is a Lease, whole.
type lease struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		HolderIdentity       string         `json:"holderIdentity"`
		LeaseDurationSeconds int32          `json:"leaseDurationSeconds,omitempty"`
		AcquireTime          meta.MicroTime `json:"acquireTime,omitzero"`
		RenewTime            meta.MicroTime `json:"renewTime,omitzero"`
		LeaseTransitions     int32          `json:"leaseTransitions,omitempty"`
		Strategy             *string        `json:"strategy,omitempty"`
		PreferredHolder      *string        `json:"preferredHolder,omitempty"`
	} `json:"spec"`
}

// term is an election on its way. It is used by one goroutine at a time.
type term struct {
	leases   *Objects[lease]
	name     string
	identity string
	duration time.Duration

	held    *lease    // as it was last seen
	seen    time.Time // since when it has been so
	renewed time.Time // when the last renewal began that succeeded
}

// Run waits until this program may lead and calls lead. When lead returns, it gives the
// lease up and returns the error of lead. When the lease is lost, the context of lead ends,
// and Run returns ErrLost as soon as lead has returned. When ctx ends, so does the context of
// lead; the lease is held until lead has returned, so that nobody else leads before.
func (e Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	kind := registry.Of(registry.Definition[lease]{Group: names.GroupCoordination, Version: "v1", Kind: "Lease"})
	t := &term{
		leases: Of[lease](e.Conn, kind).In(e.Namespace), name: e.Name,
		identity: cmp.Or(e.Identity, uuid.NewString()), duration: max(time.Second, cmp.Or(e.Duration, 15*time.Second).Truncate(time.Second)),
	}
	if !segment(e.Namespace) || !segment(e.Name) || lead == nil {
		return fmt.Errorf("an election by the lease %q in the namespace %q needs both, and what to do", e.Name, e.Namespace)
	}
	log := e.Conn.log().With("lease", e.Namespace+"/"+e.Name, "as", t.identity)
	for {
		won, err := t.campaign(ctx)
		if won {
			break
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("asking for the lease failed", "error", err)
		}
		if pause(ctx, jitter(t.duration/5)) != nil {
			return nil
		}
	}
	log.Info("leading")
	return t.lead(ctx, lead)
}

// end is when leading ends if the lease is not renewed before.
func (t *term) end() time.Time { return t.renewed.Add(t.duration * 2 / 3) }

// campaign takes the lease if it is free, and reports whether it did, in time to lead.
func (t *term) campaign(ctx context.Context) (bool, error) {
	now := time.Now() // before all that the server does: others count from when they see it
	ctx, cancel := context.WithDeadline(ctx, now.Add(t.duration/3))
	defer cancel()
	found, err := t.leases.Get(ctx, t.name)
	if meta.IsNotFound(err) {
		fresh := &lease{ObjectMeta: meta.ObjectMeta{Name: t.name}}
		t.sign(fresh, now)
		t.held, err = t.leases.Create(ctx, fresh)
		t.renewed = now
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	if t.held == nil || t.held.ResourceVersion != found.ResourceVersion || t.held.UID != found.UID {
		t.held, t.seen = found, time.Now() // after what the holder did
	}
	free := found.Spec.HolderIdentity == "" || found.Spec.HolderIdentity == t.identity
	if !free && now.Sub(t.seen) < time.Duration(found.Spec.LeaseDurationSeconds)*time.Second {
		return false, nil // it is held, by this clock: that of the holder may go wrong
	}
	next := *found
	t.sign(&next, now)
	stored, err := t.leases.Update(ctx, &next)
	if meta.IsConflict(err) {
		return false, nil // somebody else was faster
	}
	if err != nil {
		return false, err
	}
	t.held, t.renewed = stored, now
	return true, nil
}

// sign makes a lease that of this program.
func (t *term) sign(l *lease, now time.Time) {
	if l.Spec.HolderIdentity != t.identity {
		if l.ResourceVersion != "" {
			l.Spec.LeaseTransitions++
		}
		l.Spec.AcquireTime = meta.NewMicroTime(now)
	}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = t.identity, int32(t.duration/time.Second), meta.NewMicroTime(now)
}

// lead calls the program and renews the lease until it has returned.
func (t *term) lead(ctx context.Context, lead func(context.Context) error) error {
	leading, stop := context.WithCancel(ctx)
	defer stop()
	result := make(chan error, 1)
	go func() { result <- lead(leading) }()
	holding := context.WithoutCancel(ctx) // until lead has returned
	tick := time.NewTicker(t.duration / 5)
	defer tick.Stop()
	for held := true; held; {
		select {
		case err := <-result:
			t.release(holding)
			return err
		case <-tick.C:
			held = t.renew(holding)
		case <-time.After(time.Until(t.end())):
			held = false
		}
	}
	stop()
	return errors.Join(ErrLost, <-result)
}

// renew renews the lease, and reports whether this program may still lead.
func (t *term) renew(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, t.end())
	defer cancel()
	now := time.Now()
	next := *t.held
	t.sign(&next, now)
	stored, err := t.leases.Update(ctx, &next)
	if err == nil {
		t.held, t.renewed = stored, now
		return true
	}
	if meta.IsConflict(err) || meta.IsNotFound(err) {
		found, err := t.leases.Get(ctx, t.name)
		switch {
		case meta.IsNotFound(err), err == nil && found.Spec.HolderIdentity != t.identity:
			return false
		case err == nil:
			t.held = found // somebody else changed something in it
		}
	}
	return time.Now().Before(t.end())
}

// release gives the lease up, so that nobody has to wait. If that fails, they wait.
func (t *term) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.duration/3)
	defer cancel()
	now := meta.NewMicroTime(time.Now())
	next := *t.held
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds, next.Spec.RenewTime, next.Spec.AcquireTime = "", 1, now, now
	if _, err := t.leases.Update(ctx, &next); err != nil {
		t.leases.conn.log().Warn("giving the lease up failed", "lease", t.name, "error", err)
	}
}
