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

// The time between two sweeps, and until the next one if the store had no room for a missing reservation.
const (
	sweepInterval = time.Hour
	sweepRetry    = time.Minute
)

// Sweep returns the controller that adds missing reservations and deletes orphaned ones, see ReserveHeld, and the
// fences and sequences of namespaces that are gone. Orphaned records do no harm, but would stay for good. The
// controller has one key. ok is false if no type has reservations and there are no namespaces.
func (s *Store) Sweep() (c client.Controller, ok bool) {
	var types []meta.GroupResource
	for r := range s.allocators {
		types = append(types, r)
	}
	if namespaces := (meta.GroupResource{Resource: "namespaces"}); s.o.Types().Type(namespaces) != nil {
		types = append(types, namespaces)
	}
	var asked atomic.Bool
	return client.Controller{
		Name: "reservations", Types: types, Identity: true,
		MapEvent: func(client.Event) []string {
			if asked.Swap(true) {
				return nil
			}
			return []string{"all"}
		},
		Forget: func() { asked.Store(false) },
		Reconcile: func(ctx context.Context, _ client.Client, _ string) (time.Duration, error) {
			again, err := sweepInterval, s.ReserveHeld(ctx)
			if errors.Is(err, storage.ErrFull) {
				again, err = sweepRetry, nil
			}
			return again, errors.Join(err, s.sweepFences(ctx), s.sweepSequences(ctx))
		},
	}, len(types) > 0
}
