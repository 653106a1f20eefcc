package server

import (
	"context"
	"log/slog"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/election"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objects"
)

// present holds the Lease by which others know that the server is there and where, until the
// context ends. Its holder is the place. Its name is this server's alone: another one that is reached
// there has a Lease of its own, and stays when this one goes.
func (s *Server) present(ctx context.Context) {
	at := s.advertise.String()
	l := presence{s.objects.Leadership(election.ServerLeasesAt(s.advertise) + uuid.NewString()[:8])}
	candidate := election.Candidate{
		Record: l, Identity: at, Duration: election.Duration, Longest: election.Duration,
		Log: slog.New(faultsOnly{s.log.With("lease", l.Lease().String()).Handler()}),
	}
	for ctx.Err() == nil {
		_ = candidate.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }) // a lease that was lost is asked for again
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), election.Duration/3)
	defer cancel()
	leases := meta.GroupResource{Group: s.names.Group(names.GroupCoordination), Resource: "leases"}
	if err := s.client.Delete(ctx, leases, l.Lease(), registry.DeleteOptions{}); err != nil && !meta.IsNotFound(err) {
		s.log.Warn("that the server goes is seen by others only when its lease has run out", "lease", l.Lease().String(), "error", err)
	}
}

// presence is a Lease that nobody competes for, so that nothing depends on its terms.
type presence struct{ *objects.Leadership }

// Put implements election.Record.
func (p presence) Put(ctx context.Context, l *election.Lease, _ bool) (*election.Lease, error) {
	return p.Leadership.Put(ctx, l, false)
}

// faultsOnly leaves out of a log what a candidate tells of its success.
type faultsOnly struct{ slog.Handler }

// Enabled implements slog.Handler.
func (f faultsOnly) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && f.Handler.Enabled(ctx, l)
}
