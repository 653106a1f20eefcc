// Package fromfake is a test of the operator with controller-runtime's fake client, and the
// same one with a server; and what the one says and the other one does not.
package fromfake

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"orch.io/controlplane/examples/operator"
)

// TestBefore: the fake client has no defaults, no uids and no garbage collector, so the test
// makes up what the operator needs of a server, and cannot see what becomes of the ships.
func TestBefore(t *testing.T) {
	fleet := newFleet(2)
	fleet.UID = "made-up"     // ships name their owner
	fleet.Spec.Flag = "white" // the default
	fleet.Finalizers = []string{operator.Finalizer}
	c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(fleet).WithObjects(fleet).Build()
	r := &operator.Reconciler{Client: c}
	for range 2 { // the ships, then the status
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fleet)})
		require.NoError(t, err)
	}
	require.Equal(t, 2, ships(t, c))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(fleet), fleet))
	require.EqualValues(t, 2, fleet.Status.Ships)
}

func ships(t *testing.T, c client.Client) int {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(operator.GroupVersion.WithKind("ShipList"))
	require.NoError(t, c.List(t.Context(), list))
	return len(list.Items)
}
