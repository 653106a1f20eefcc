package fromfake

import (
	"testing"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"orch.io/controlplane/examples/operator"
	"orch.io/controlplane/server/servertest"
)

// TestAfter is the test with a server: the server sets the fields that the test does not set, and a
// conflict shows that the operator retries.
func TestAfter(t *testing.T) {
	fleet, s := newFleet(2), newServer(t)
	c := connect(t, s)
	require.NoError(t, c.Create(t.Context(), fleet))
	require.Equal(t, "white", fleet.Spec.Flag)
	r := &operator.Reconciler{Client: c}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fleet)}
	for range 2 { // first the finalizer, then the ships
		_, err := r.Reconcile(t.Context(), request)
		require.NoError(t, err)
	}
	s.Fail(servertest.On("patch", "fleets", "status").Times(1).With(servertest.Conflict))
	_, err := r.Reconcile(t.Context(), request)
	require.Error(t, err)
	_, err = r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, 2, ships(t, c))
	require.NoError(t, c.Get(t.Context(), request.NamespacedName, fleet))
	require.EqualValues(t, 2, fleet.Status.Ships)
}
