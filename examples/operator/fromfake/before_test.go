// Package fromfake has a test of the operator with controller-runtime's fake client and the same test
// with a server, and compares the behavior of both.
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

// TestBefore is the test with the fake client, which has no defaults, UIDs or garbage collection. The
// test must set what a server would set, and cannot see whether the ships are removed.
func TestBefore(t *testing.T) {
	fleet := newFleet(2)
	fleet.UID = "made-up"     // ships refer to their owner by UID
	fleet.Spec.Flag = "white" // the default
	fleet.Finalizers = []string{operator.Finalizer}
	c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(fleet).WithObjects(fleet).Build()
	r := &operator.Reconciler{Client: c}
	for range 2 { // first the ships, then the status
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
