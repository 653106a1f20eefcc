package election

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
)

// Lease is a coordination Lease with all its fields.
type Lease struct {
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

// assign makes holder the holder of the lease, or renews it if holder holds it already.
func (l *Lease) assign(holder string, duration time.Duration, now time.Time) {
	if l.Spec.HolderIdentity != holder {
		if l.ResourceVersion != "" {
			l.Spec.LeaseTransitions = max(0, l.Spec.LeaseTransitions+1)
		}
		l.Spec.AcquireTime = meta.NewMicroTime(now)
	}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = holder, int32(duration/time.Second), meta.NewMicroTime(now)
}

// Duration is the duration of the Leases of servers.
const Duration = 15 * time.Second

// ServerLeases is the name prefix of the Leases by which servers announce themselves: each server
// holds one while it runs.
const ServerLeases = "controlplane-server-"

// nameReplacer replaces the characters of an address that names cannot contain.
var nameReplacer = strings.NewReplacer("[", "", "]", "", ":", "-")

// ServerLeasesAt returns the name prefix of the Leases of the servers at an address. Behind a load
// balancer there may be several.
func ServerLeasesAt(place netip.AddrPort) string {
	return ServerLeases + nameReplacer.Replace(place.String()) + "-"
}

var (
	// ErrConflict reports that the lease was not written because another client changed it.
	ErrConflict = errors.New("another client has changed the lease")
	// ErrStoreFull reports that the store is full, so that no candidate can write the lease.
	ErrStoreFull = errors.New("the store has no room for the lease")
)

// Record stores the lease of an election.
type Record interface {
	// Get returns the lease, or nil if there is none.
	Get(ctx context.Context) (*Lease, error)

	// Put stores l and returns it as stored. It replaces the lease with the ResourceVersion of l,
	// or creates the lease if that is empty. If the stored lease is another, Put fails with
	// ErrTaken. wins is true if a term begins with this write; the implementation can then begin a
	// fence for the term.
	Put(ctx context.Context, l *Lease, wins bool) (*Lease, error)

	// Await returns when the lease may differ from seen, or when ctx ends. If it returns an error,
	// the candidate polls the lease instead.
	Await(ctx context.Context, seen *Lease) error
}
