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

// Election elects one of several programs as leader by a Lease that the leader renews. It is
// compatible with other clients that elect leaders by Leases.
//
// An Election needs permission to get, create and update the Lease. With permission to watch it, a
// program learns at once when the Lease is released; otherwise it polls.
//
// Clocks are not compared between programs. If the machine of the leader was suspended, or if
// another client deletes or takes over the Lease, the leader may continue for a moment after
// another program was elected, until its next renewal.
type Election struct {
	Conn Conn

	// Namespace and Name identify the Lease.
	Namespace, Name string

	// Identity identifies this program. No two programs may have the same Identity. Empty means a
	// random identity.
	Identity string

	// Duration is the time after the last renewal when another program may be elected. It is
	// truncated to whole seconds; zero means 15 seconds. The leader renews the Lease five times per
	// Duration. If it cannot renew it for two thirds of Duration, it stops leading: the last third
	// is left for lead to return before another program leads.
	Duration time.Duration
}

// ErrLost is returned by Election.Run if the Lease could not be renewed, or another program took
// it.
var ErrLost = election.ErrLost

// longestLease bounds how long a Lease of another client is respected without renewal.
const longestLease = time.Hour

// Run waits until this program is elected and calls lead. When lead returns, Run releases the Lease
// and returns the error of lead. If the Lease is lost, the context of lead is cancelled, and Run
// returns ErrLost when lead has returned. If ctx ends, the context of lead is cancelled, too, and
// the Lease is held until lead has returned, so that no other program leads before. If ctx ends
// before this program is elected, Run returns nil.
func (e Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	if !segment(e.Namespace) || !segment(e.Name) || lead == nil {
		return fmt.Errorf("invalid election: Lease %q, namespace %q: both names and the function lead are required", e.Name, e.Namespace)
	}
	kind := registry.Of(registry.Definition[election.Lease]{Group: wellknown.GroupCoordination, Version: "v1", Kind: "Lease"})
	identity := cmp.Or(e.Identity, uuid.NewString())
	duration := max(time.Second, cmp.Or(e.Duration, 15*time.Second).Truncate(time.Second))
	c := election.Candidate{
		Record:   &leaseRecord{leases: Of[election.Lease](e.Conn, kind).In(e.Namespace), name: e.Name},
		Identity: identity, Duration: duration, MaxDuration: max(duration, longestLease),
		Log: e.Conn.log().With("lease", e.Namespace+"/"+e.Name, "as", identity),
	}
	return c.Run(ctx, lead)
}

// leaseRecord is a Lease at a server. It implements election.Record.
type leaseRecord struct {
	leases      *Objects[election.Lease]
	name        string
	unwatchable bool // the user must not watch it
}

var errWatchForbidden = errors.New("watching the Lease is forbidden")

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
		return nil, election.ErrConflict
	}
	return stored, err
}

// Await implements election.Record.
func (r *leaseRecord) Await(ctx context.Context, seen *election.Lease) error {
	if r.unwatchable {
		return errWatchForbidden
	}
	for _, err := range r.leases.WithFields("metadata.name="+r.name).Watch(ctx, seen.ResourceVersion) {
		r.unwatchable = meta.ReasonOf(err) == meta.ReasonForbidden
		return err
	}
	return ctx.Err()
}
