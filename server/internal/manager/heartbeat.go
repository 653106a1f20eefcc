package manager

import (
	"context"
	"log/slog"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/election"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objects"
)

// heartbeat renews the Lease that publishes the address of this server to the other servers, until the context ends,
// and then deletes it. The holder of the Lease is the address. The name of the Lease is unique, so that a restarted
// server at the same address does not lose its Lease when the old process ends.
func (m *Manager) heartbeat(ctx context.Context) {
	l := ownLease{m.o.Objects.Leadership(election.ServerLeasesAt(m.o.Advertise) + uuid.NewString()[:8])}
	candidate := election.Candidate{
		Record: l, Identity: m.o.Advertise.String(), Duration: election.Duration, MaxDuration: election.Duration,
		Log: slog.New(warnings{m.o.Log.With("lease", l.Lease().String()).Handler()}),
	}
	for ctx.Err() == nil { // Run returns if the Lease was lost: acquire it again
		_ = candidate.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), election.Duration/3)
	defer cancel()
	leases := meta.GroupResource{Group: m.o.Names.Group(wellknown.GroupCoordination), Resource: "leases"}
	if err := m.o.Client.Delete(ctx, leases, l.Lease(), registry.DeleteOptions{}); err != nil && !meta.IsNotFound(err) {
		m.o.Log.Warn("failed to delete this server's Lease; other servers see the shutdown when it expires", "lease", l.Lease().String(), "error", err)
	}
}

// ownLease is a Lease for which no other candidate competes. It has no terms.
type ownLease struct{ *objects.Leadership }

// Put implements election.Record.
func (l ownLease) Put(ctx context.Context, lease *election.Lease, _ bool) (*election.Lease, error) {
	return l.Leadership.Put(ctx, lease, false)
}

// warnings drops log records below the level Warn.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}
