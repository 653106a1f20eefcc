package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/election"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Election lets one of several programs lead at a time, by a Lease that it renews. It
// agrees with elections of other clients that use the same Lease.
//
// It gets, creates and updates the Lease. If it may watch it, too, it learns at once that it
// was given up; else it looks now and then.
//
// No clock is compared with another one. A program whose machine slept may go on for a moment
// after another one began. So may one whose Lease somebody else deletes, or gives away: it
// finds out when it renews it.
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
var ErrLost = election.ErrLost

// longestLease is how long the lease of another client counts at most that is not renewed.
const longestLease = time.Hour

// Run waits until this program may lead and calls lead. When lead returns, it gives the
// lease up and returns the error of lead. When the lease is lost, the context of lead ends,
// and Run returns ErrLost as soon as lead has returned. When ctx ends, so does the context of
// lead; the lease is held until lead has returned, so that nobody else leads before.
func (e Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	if !segment(e.Namespace) || !segment(e.Name) || lead == nil {
		return fmt.Errorf("an election by the lease %q in the namespace %q needs both, and what to do", e.Name, e.Namespace)
	}
	kind := registry.Of(registry.Definition[election.Lease]{Group: wellknown.GroupCoordination, Version: "v1", Kind: "Lease"})
	identity := cmp.Or(e.Identity, uuid.NewString())
	duration := max(time.Second, cmp.Or(e.Duration, 15*time.Second).Truncate(time.Second))
	c := election.Candidate{
		Record:   &leaseRecord{leases: Of[election.Lease](e.Conn, kind).In(e.Namespace), name: e.Name},
		Identity: identity, Duration: duration, Longest: max(duration, longestLease),
		Log: e.Conn.log().With("lease", e.Namespace+"/"+e.Name, "as", identity),
	}
	return c.Run(ctx, lead)
}

// leaseRecord is a Lease of a server. It implements election.Record.
type leaseRecord struct {
	leases *Objects[election.Lease]
	name   string
	unseen bool // it may not be watched
}

var errUnseen = errors.New("the lease may not be watched")

// Get implements election.Record.
func (r *leaseRecord) Get(ctx context.Context) (*election.Lease, error) {
	found, err := r.leases.Get(ctx, r.name)
	if meta.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// Put implements election.Record.
func (r *leaseRecord) Put(ctx context.Context, l *election.Lease, _ bool) (*election.Lease, error) {
	write := r.leases.Update
	if l.ResourceVersion == "" {
		l.Name, write = r.name, r.leases.Create
	}
	stored, err := write(ctx, l)
	if meta.IsConflict(err) || meta.IsAlreadyExists(err) || meta.IsNotFound(err) && l.ResourceVersion != "" {
		return nil, election.ErrTaken
	}
	return stored, err
}

// Await implements election.Record.
func (r *leaseRecord) Await(ctx context.Context, seen *election.Lease) error {
	if r.unseen {
		return errUnseen
	}
	for _, err := range r.leases.WithFields("metadata.name="+r.name).Watch(ctx, seen.ResourceVersion) {
		r.unseen = meta.ReasonOf(err) == meta.ReasonForbidden
		return err
	}
	return ctx.Err()
}
