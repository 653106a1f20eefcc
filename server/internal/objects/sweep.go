package objects

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/storage"
)

// The interval between two sweeps. sweepRetry applies if the store had no room for the missing reservations.
const (
	sweepInterval = time.Hour
	sweepRetry    = time.Minute
)

// Sweep returns the controller that adds missing reservations and deletes orphaned ones, see ReserveHeld, and deletes
// the fences and sequences of deleted namespaces. Orphaned records are harmless, but would otherwise stay forever.
// The controller has a single key. ok is false if no type has reservations and there are no namespaces.
func (s *Store) Sweep() (c client.Controller, ok bool) {
	var types []meta.GroupResource
	for r := range s.allocators {
		types = append(types, r)
	}
	if namespaces := (meta.GroupResource{Resource: "namespaces"}); s.o.Types().Type(namespaces) != nil {
		types = append(types, namespaces)
	}
	var queued atomic.Bool
	return client.Controller{
		Name: "reservations", Types: types, Identity: true,
		MapEvent: func(client.Event) []string {
			if queued.Swap(true) {
				return nil
			}
			return []string{"all"}
		},
		Forget: func() { queued.Store(false) },
		Reconcile: func(ctx context.Context, _ client.Client, _ string) (time.Duration, error) {
			again, err := sweepInterval, s.ReserveHeld(ctx)
			if errors.Is(err, storage.ErrFull) {
				again, err = sweepRetry, nil
			}
			return again, errors.Join(err, s.sweepFences(ctx), s.sweepSequences(ctx))
		},
	}, len(types) > 0
}
