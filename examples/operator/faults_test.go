package operator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"orch.io/controlplane/server/servertest"
)

// TestFaults: with each fault, the fleet finally has each of its ships exactly once. Times checks that
// the fault was injected.
func TestFaults(t *testing.T) {
	on := servertest.On
	for name, rule := range map[string]servertest.Rule{
		"conflict on the status":                     on("patch", "fleets", "status").Times(3).With(servertest.Conflict),
		"error on the creation of a ship":            on("apply", "ships").Times(2).With(servertest.InternalError),
		"lost answer to the creation of a ship":      on("apply", "ships").Named("armada-1").Times(1).With(servertest.LoseResponse),
		"lost answer to the update of the finalizer": on("update", "fleets").Times(1).With(servertest.LoseResponse),
		"unavailable list of an informer":            on("list", "ships").Times(1).With(servertest.Unavailable),
		"expired watch":                              on("watch", "ships").Times(1).With(servertest.Expired),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := patience(t), newServer(t)
			s.Fail(rule)
			c := startManager(t, s)
			fleet := newFleet("armada", 3)
			require.NoError(t, c.Create(ctx, fleet))
			complete(t, ctx, c, fleet)
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(GroupVersion.WithKind("ShipList"))
			require.NoError(t, c.List(ctx, list))
			require.Len(t, list.Items, 3)
		})
	}
}

// TestCutAndCrash: the operator continues after its watches were cut and after the server was killed
// and restarted.
func TestCutAndCrash(t *testing.T) {
	for name, disturb := range map[string]func(*servertest.Server){
		"watches are cut": func(s *servertest.Server) { require.Positive(t, s.Cut(servertest.On("watch", "*"))) },
		"crash":           func(s *servertest.Server) { s.Crash(); s.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := patience(t), newServer(t)
			c := startManager(t, s)
			fleet := newFleet("armada", 1)
			require.NoError(t, c.Create(ctx, fleet))
			complete(t, ctx, c, fleet)
			disturb(s)
			require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(fleet), fleet))
			fleet.Spec.Ships = 3
			require.NoError(t, c.Update(ctx, fleet))
			complete(t, ctx, c, fleet)
		})
	}
}
