package suite

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"orch.io/controlplane/examples/operator"
	"orch.io/controlplane/server/servertest"
)

func startServer(t *testing.T) *rest.Config {
	t.Helper()
	s := servertest.New(t)
	s.InstallCRDs(os.DirFS("../config/crd"))
	return &rest.Config{Host: s.Host(), Transport: s.Transport(), QPS: -1}
}

func startOperator(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	operator.AddToScheme(scheme)
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	require.NoError(t, (&operator.Reconciler{}).SetupWithManager(m))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

func newFleet(ships int32) *operator.Fleet {
	return &operator.Fleet{ObjectMeta: metav1.ObjectMeta{Name: "armada", Namespace: "default"}, Spec: operator.FleetSpec{Ships: ships}}
}

func complete(t *testing.T, c client.Client, fleet *operator.Fleet) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(fleet), fleet)
		return err == nil && meta.IsStatusConditionTrue(fleet.Status.Conditions, "Complete") && fleet.Status.Ships == fleet.Spec.Ships
	}, time.Minute, 10*time.Millisecond)
}

func TestFleetGetsShips(t *testing.T) {
	c := startOperator(t, startServer(t))
	fleet := newFleet(3)
	require.NoError(t, c.Create(t.Context(), fleet))
	complete(t, c, fleet)
	fleet.Spec.Ships = 2
	require.NoError(t, c.Update(t.Context(), fleet))
	complete(t, c, fleet)
}

func TestFleetEnds(t *testing.T) {
	c := startOperator(t, startServer(t))
	fleet := newFleet(1)
	require.NoError(t, c.Create(t.Context(), fleet))
	complete(t, c, fleet)
	require.NoError(t, c.Delete(t.Context(), fleet))
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(fleet), fleet))
	}, time.Minute, 10*time.Millisecond)
}

func TestFleetIsChecked(t *testing.T) {
	c := startOperator(t, startServer(t))
	require.True(t, apierrors.IsInvalid(c.Create(t.Context(), newFleet(101))))
}
