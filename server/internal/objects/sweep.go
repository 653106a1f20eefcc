package objects

import (
	"context"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/controller"
)

// sweepAgain is how often a store is looked through for reservations that are nobody's.
const sweepAgain = time.Hour

// Sweep returns the controller that puts reservations right, see ReserveHeld, while servers run.
// Those that are nobody's are in nobody's way, but would stay for good. It has one key. ok is
// whether any type has something to reserve.
func (s *Store) Sweep() (c controller.Controller, ok bool) {
	var types []meta.GroupResource
	for r := range s.allocators {
		types = append(types, r)
	}
	var asked atomic.Bool
	return controller.Controller{
		Name: "reservations", Types: types, Identity: true,
		Observe: func(controller.Event) []string {
			if asked.Swap(true) {
				return nil
			}
			return []string{"all"}
		},
		Forget: func() { asked.Store(false) },
		Reconcile: func(ctx context.Context, _ controller.Client, _ string) (time.Duration, error) {
			return sweepAgain, s.ReserveHeld(ctx)
		},
	}, len(types) > 0
}
