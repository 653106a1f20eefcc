package operator

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// newServer starts a server with both kinds, as envtest's Environment does.
func newServer(t *testing.T) *servertest.Server {
	t.Helper()
	ships, err := registry.FromCRDDir(os.DirFS("crds"))
	require.NoError(t, err)
	return servertest.New(t, func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[Fleet]{Group: GroupVersion.Group, Version: GroupVersion.Version, Status: true}))
		b.Register(ships...)
	})
}

// startManager runs the operator with a server until the test ends.
func startManager(t *testing.T, s *servertest.Server) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	AddToScheme(scheme)
	config := &rest.Config{Host: s.Host(), Transport: s.Transport(), QPS: -1}
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	require.NoError(t, (&Reconciler{}).SetupWithManager(m))
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

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newFleet(name string, ships int32) *Fleet {
	return &Fleet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: FleetSpec{Ships: ships}}
}

// complete waits until a fleet has the requested ships.
func complete(t *testing.T, ctx context.Context, c client.Client, fleet *Fleet) {
	t.Helper()
	require.Eventually(t, func() bool {
		if err := c.Get(ctx, client.ObjectKeyFromObject(fleet), fleet); err != nil {
			t.Error(err)
			return true
		}
		done := meta.FindStatusCondition(fleet.Status.Conditions, "Complete")
		return done != nil && done.Status == metav1.ConditionTrue && done.ObservedGeneration == fleet.Generation && fleet.Status.Ships == fleet.Spec.Ships
	}, time.Minute, 5*time.Millisecond)
}

func ship(t *testing.T, ctx context.Context, c client.Client, name string) *unstructured.Unstructured {
	t.Helper()
	s := newShip()
	require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, s))
	return s
}

func TestReconcileCreatesShips(t *testing.T) {
	ctx := patience(t)
	c := startManager(t, newServer(t))
	fleet := newFleet("armada", 3)
	require.NoError(t, c.Create(ctx, fleet))
	require.Equal(t, "white", fleet.Spec.Flag, "the default")
	complete(t, ctx, c, fleet)
	require.Contains(t, fleet.Finalizers, Finalizer)
	first := ship(t, ctx, c, "armada-0")
	captain, _, err := unstructured.NestedString(first.Object, "spec", "captain")
	require.NoError(t, err)
	require.Equal(t, "nobody", captain, "the default of the definition")
	require.True(t, metav1.IsControlledBy(first, fleet))

	// Fields of other managers survive the apply of the operator.
	require.NoError(t, c.Patch(ctx, first, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"captain":"ahab"}}`))))
	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(fleet), fleet))
	fleet.Spec.Ships, fleet.Spec.Flag = 2, "black"
	require.NoError(t, c.Update(ctx, fleet))
	complete(t, ctx, c, fleet)
	first = ship(t, ctx, c, "armada-0")
	require.Equal(t, map[string]any{"captain": "ahab", "flag": "black"}, first.Object["spec"])
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "armada-2"}, newShip())))

	// A deleted ship is created again.
	require.NoError(t, c.Delete(ctx, first))
	lost := first.GetUID()
	require.Eventually(t, func() bool {
		again := newShip()
		return c.Get(ctx, client.ObjectKeyFromObject(first), again) == nil && again.GetUID() != lost
	}, time.Minute, 5*time.Millisecond)
}

func TestFinalizerDeletesShips(t *testing.T) {
	ctx := patience(t)
	c := startManager(t, newServer(t))
	fleet := newFleet("armada", 2)
	require.NoError(t, c.Create(ctx, fleet))
	complete(t, ctx, c, fleet)
	require.NoError(t, c.Delete(ctx, fleet))
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(fleet), fleet))
	}, time.Minute, 5*time.Millisecond)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(GroupVersion.WithKind("ShipList"))
	require.NoError(t, c.List(ctx, list))
	require.Empty(t, list.Items)
}

// TestGarbageCollection: dependents of a deleted owner are removed without an operator. In envtest they
// would stay.
func TestGarbageCollection(t *testing.T) {
	ctx := patience(t)
	s := newServer(t)
	scheme := runtime.NewScheme()
	AddToScheme(scheme)
	c, err := client.New(&rest.Config{Host: s.Host(), Transport: s.Transport()}, client.Options{Scheme: scheme})
	require.NoError(t, err)
	fleet := newFleet("armada", 1)
	require.NoError(t, c.Create(ctx, fleet))
	require.NoError(t, (&Reconciler{Client: c}).build(ctx, fleet, 0))
	ship(t, ctx, c, "armada-0")
	require.NoError(t, c.Delete(ctx, fleet))
	s.Settle()
	err = c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "armada-0"}, newShip())
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// TestServerValidatesBothKinds: the server rejects invalid objects of both kinds.
func TestServerValidatesBothKinds(t *testing.T) {
	ctx := patience(t)
	c := startManager(t, newServer(t))
	require.True(t, apierrors.IsInvalid(c.Create(ctx, newFleet("too-many", 101))))
	pirate := newFleet("pirate", 1)
	pirate.Spec.Flag = "red"
	require.True(t, apierrors.IsInvalid(c.Create(ctx, pirate)))
	one := newFleet("one", 0)
	require.NoError(t, c.Create(ctx, one))
	stale := one.DeepCopyObject().(*Fleet)
	complete(t, ctx, c, one)
	stale.Spec.Ships = 1
	require.True(t, apierrors.IsConflict(c.Update(ctx, stale)))
}
