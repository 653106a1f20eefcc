package operator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"orch.io/controlplane/server/servertest"
)

// TestFaults: whatever goes wrong on the way, the fleet has its ships in the end, each of
// them once. That the fault did happen, Times sees to.
func TestFaults(t *testing.T) {
	on := servertest.On
	for name, rule := range map[string]servertest.Rule{
		"a status that somebody else wrote":       on("patch", "fleets", "status").Times(3).With(servertest.Conflict),
		"a ship that cannot be made":              on("apply", "ships").Times(2).With(servertest.InternalError),
		"a ship whose answer is lost":             on("apply", "ships").Named("armada-1").Times(1).With(servertest.LoseResponse),
		"a finalizer whose answer is lost":        on("update", "fleets").Times(1).With(servertest.LoseResponse),
		"an informer's list that is refused":      on("list", "ships").Times(1).With(servertest.Unavailable),
		"a watch that the server has no past for": on("watch", "ships").Times(1).With(servertest.Expired),
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

// TestCutAndCrash: the operator goes on where its watches break off, and where the server
// itself is killed and comes back.
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
