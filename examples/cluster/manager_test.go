package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"orch.io/controlplane/examples/cluster/internal/testbed"
)

// sunkBy is the finalizer that keeps a fleet until it is sunk.
const sunkBy = "sea.example.com/sunk"

const fleetDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"fleets.sea.example.com"},
"spec":{"group":"sea.example.com","scope":"Namespaced","names":{"plural":"fleets","singular":"fleet","kind":"Fleet"},"versions":[{
"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"ships":{"type":"integer"}}},"status":{"type":"object","properties":{"ships":{"type":"integer"}}}}}}}]}}`

func newFleet(name string) *unstructured.Unstructured {
	f := &unstructured.Unstructured{}
	f.SetGroupVersionKind(schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Fleet"})
	f.SetNamespace("default")
	f.SetName(name)
	return f
}

// ledger records the actions of the managers, by the UIDs of fleets.
type ledger struct {
	t testing.TB

	mu    sync.Mutex
	busy  map[string]int       // number of running reconciliations by manager
	sunk  map[types.UID]int    // number of times each fleet was sunk
	built map[string]types.UID // UID of the fleet for which a ship was built, by name of the ship
	by    map[string]int       // number of reconciliations by manager
}

// admiral is the reconciler: it creates the ships of fleets, which are ConfigMaps, and sinks deleted
// fleets.
type admiral struct {
	ctrlclient.Client
	*ledger
	manager string
}

func (l *ledger) begin(manager string) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, n := range l.busy {
		if other != manager && n > 0 {
			l.t.Errorf("%s reconciles while %s does", manager, other)
		}
	}
	l.busy[manager]++
	l.by[manager]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy[manager]--
	}
}

// await waits until a manager reconciles, and checks that no other manager does.
func (l *ledger) await(manager string) {
	l.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		l.mu.Lock()
		n := l.by[manager]
		l.mu.Unlock()
		if n > 0 {
			return
		}
		require.True(l.t, time.Now().Before(deadline), "%s does not begin", manager)
	}
}

func (a *admiral) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	defer a.begin(a.manager)()
	f := newFleet(r.Name)
	if err := a.Get(ctx, r.NamespacedName, f); err != nil {
		return ctrl.Result{}, ctrlclient.IgnoreNotFound(err)
	}
	if f.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, a.sink(ctx, f)
	}
	if controllerutil.AddFinalizer(f, sunkBy) {
		return ctrl.Result{}, a.Update(ctx, f)
	}
	want, _, _ := unstructured.NestedInt64(f.Object, "spec", "ships")
	for i := range want {
		if err := a.build(ctx, f, fmt.Sprintf("%s-%d", f.GetName(), i)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if has, _, _ := unstructured.NestedInt64(f.Object, "status", "ships"); has == want {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(f.Object, want, "status", "ships"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, a.Status().Update(ctx, f)
}

func (a *admiral) build(ctx context.Context, f *unstructured.Unstructured, name string) error {
	ship := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.GetNamespace(), Name: name, Labels: map[string]string{"fleet": f.GetName()}}}
	if err := a.Get(ctx, ctrlclient.ObjectKeyFromObject(ship), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		return err
	}
	if err := controllerutil.SetControllerReference(f, ship, a.Scheme()); err != nil {
		return err
	}
	err := a.Create(ctx, ship)
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache was behind
	}
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.built[name] == f.GetUID() {
			a.t.Errorf("%s was built twice", name)
		}
		a.built[name] = f.GetUID()
	}
	return err
}

// sink removes the finalizer, if the fleet still has the version that was read.
func (a *admiral) sink(ctx context.Context, f *unstructured.Unstructured) error {
	if !controllerutil.RemoveFinalizer(f, sunkBy) {
		return nil
	}
	err := a.Update(ctx, f)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sunk[f.GetUID()]++
	}
	return ctrlclient.IgnoreNotFound(err)
}

// startManager runs a manager with leader election until stop is called or the test ends.
func startManager(t testing.TB, l *ledger, name string, config *rest.Config) (stop func()) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	m, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection: true, LeaderElectionID: "admirals", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(), Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}},
	})
	require.NoError(t, err)
	skip := true // several managers in one process have the same controller
	require.NoError(t, ctrl.NewControllerManagedBy(m).For(newFleet("")).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{SkipNameValidation: &skip, MaxConcurrentReconciles: 4}).Complete(&admiral{m.GetClient(), l, name}))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Start(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return stop
}

// most is the maximal number of ships of a fleet in the test.
const most = 3

// churn creates and changes fleets, and deletes every third, until the context ends. It returns the
// expected number of ships of each remaining fleet.
func churn(ctx context.Context, t testing.TB, c ctrlclient.Client) map[string]int {
	left := map[string]int{}
	until := context.WithoutCancel(ctx)
	for i := 0; ctx.Err() == nil && !t.Failed(); i++ {
		f := newFleet(fmt.Sprint("fleet-", i))
		f.Object["spec"] = map[string]any{"ships": int64(1 + i%most)}
		if err := c.Create(until, f); err != nil {
			t.Errorf("create: %v", err)
		}
		left[f.GetName()] = 1 + i%most
		if i%3 == 1 {
			if err := c.Patch(until, f, ctrlclient.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"ships":%d}}`, most))); err != nil {
				t.Errorf("patch: %v", err)
			}
			left[f.GetName()] = most
		}
		if i%3 == 2 {
			old := newFleet(fmt.Sprint("fleet-", i-2))
			if err := c.Delete(until, old); err != nil {
				t.Errorf("delete: %v", err)
			}
			delete(left, old.GetName())
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return left
}

// checkSettled returns an error until each fleet has its ships and there are no other objects.
func checkSettled(ctx context.Context, c ctrlclient.Client, left map[string]int) error {
	fleets := &unstructured.UnstructuredList{}
	fleets.SetGroupVersionKind(newFleet("").GroupVersionKind())
	var ships corev1.ConfigMapList
	if err := c.List(ctx, fleets, ctrlclient.InNamespace("default")); err != nil {
		return err
	}
	if err := c.List(ctx, &ships, ctrlclient.InNamespace("default"), ctrlclient.HasLabels{"fleet"}); err != nil {
		return err
	}
	has := map[string]int{}
	for _, s := range ships.Items {
		has[s.Labels["fleet"]]++
	}
	for _, f := range fleets.Items {
		told, _, _ := unstructured.NestedInt64(f.Object, "status", "ships")
		if n := left[f.GetName()]; n == 0 || n != has[f.GetName()] || int64(n) != told {
			return fmt.Errorf("%s has %d ships, tells of %d, should have %d", f.GetName(), has[f.GetName()], told, n)
		}
	}
	if len(fleets.Items) != len(left) || len(has) != len(left) {
		return fmt.Errorf("%d fleets, ships of %d, should be %d", len(fleets.Items), len(has), len(left))
	}
	return nil
}

// TestManagerFailover: a controller of controller-runtime with owned objects and a finalizer runs in
// one of two managers at a time, while the servers and managers are restarted. At the end everything is
// done, and nothing was done twice.
func TestManagerFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	_, servers := testbed.StartCluster(t, "--shutdown-delay-duration", "3s")
	b := testbed.NewBalancer(t, servers)
	servers[0].Must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fleetDefinition)
	c, err := ctrlclient.New(b.Config(), ctrlclient.Options{})
	require.NoError(t, err)
	l := &ledger{t: t, busy: map[string]int{}, sunk: map[types.UID]int{}, built: map[string]types.UID{}, by: map[string]int{}}
	stop := startManager(t, l, "manager-0", b.Config())
	ctx, cancel := context.WithCancel(t.Context())
	var churning sync.WaitGroup
	var left map[string]int
	churning.Go(func() { left = churn(ctx, t, c) })
	t.Cleanup(churning.Wait)
	t.Cleanup(cancel)
	for i, p := range servers {
		l.await(fmt.Sprint("manager-", i))
		next := startManager(t, l, fmt.Sprint("manager-", i+1), b.Config())
		p.Terminate()
		stop()
		p.Restart()
		stop = next
	}
	l.await(fmt.Sprint("manager-", len(servers)))
	cancel()
	churning.Wait()
	deadline := time.Now().Add(2 * time.Minute)
	for err = checkSettled(t.Context(), c, left); err != nil; err = checkSettled(t.Context(), c, left) {
		require.True(t, time.Now().Before(deadline), "%v", err)
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	for uid, n := range l.sunk {
		require.Equal(t, 1, n, "%s was sunk", uid)
	}
	require.NotEmpty(t, l.sunk)
	text, err := json.Marshal(l.by)
	require.NoError(t, err)
	t.Logf("%d fleets left, %d sunk, reconciliations %s", len(left), len(l.sunk), text)
}
