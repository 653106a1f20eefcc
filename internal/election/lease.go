package election

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
)

// Lease is a Lease, whole.
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

// sign makes a lease that of a holder.
func (l *Lease) sign(holder string, duration time.Duration, now time.Time) {
	if l.Spec.HolderIdentity != holder {
		if l.ResourceVersion != "" {
			l.Spec.LeaseTransitions = max(0, l.Spec.LeaseTransitions+1)
		}
		l.Spec.AcquireTime = meta.NewMicroTime(now)
	}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = holder, int32(duration/time.Second), meta.NewMicroTime(now)
}

// Duration is how long the Leases of servers count that are not renewed.
const Duration = 15 * time.Second

// ServerLeases begins the names of the Leases of which each server holds one as long as it
// lives.
const ServerLeases = "controlplane-server-"

// inName is what names may have of an address.
var inName = strings.NewReplacer("[", "", "]", "", ":", "-")

// ServerLeasesAt begins the names of those of the servers that are reached at a place, as
// several may be behind a balancer.
func ServerLeasesAt(place netip.AddrPort) string {
	return ServerLeases + inName.Replace(place.String()) + "-"
}

var (
	// ErrTaken says that the lease is not the one any more that was to be replaced.
	ErrTaken = errors.New("somebody else has changed the lease")
	// ErrNoRoom says that there is no room for a lease, so that nobody's can be stored.
	ErrNoRoom = errors.New("there is no room for the lease")
)

// Record is where candidates find their lease.
type Record interface {
	// Get returns the lease, nil if there is none.
	Get(ctx context.Context) (*Lease, error)

	// Put stores a lease in place of the one that has its ResourceVersion, or where there is
	// none if that is empty, and returns it as stored. It fails with ErrTaken if another one
	// is there. wins says that a term begins with it.
	Put(ctx context.Context, l *Lease, wins bool) (*Lease, error)

	// Await returns when the lease may be another one than the one that was seen, or when
	// the context ends. After an error the candidate looks at it now and then.
	Await(ctx context.Context, seen *Lease) error
}
