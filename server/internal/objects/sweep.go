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

// How often a store is looked through for reservations that are nobody's and fences of namespaces that
// are gone, and when it is after it had no room for what lacks.
const (
	sweepAgain  = time.Hour
	sweepLacked = time.Minute
)

// Sweep returns the controller that puts reservations right, see ReserveHeld, while servers run.
// Those that are nobody's, and fences of namespaces that are gone, are in nobody's way, but would
// stay for good. It has one key. ok is whether any type has something to reserve, or there are
// namespaces.
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
			again, err := sweepAgain, s.ReserveHeld(ctx)
			if errors.Is(err, storage.ErrFull) {
				again, err = sweepLacked, nil
			}
			return again, errors.Join(err, s.sweepFences(ctx), s.sweepSequences(ctx))
		},
	}, len(types) > 0
}
