package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"orch.io/controlplane/examples/cluster/internal/testbed"
)

// worker is a client of client-go that creates, reads, changes and deletes objects of its own.
type worker struct {
	t      testing.TB
	number int
	maps   corev1client.ConfigMapInterface
	newest uint64
	writes int
}

// startWorkers runs workers until stop is called, which returns the number of completed rounds. None of
// their requests may fail.
func startWorkers(t testing.TB, n int, config func() *rest.Config) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var made atomic.Int64
	for i := range n {
		client, err := corev1client.NewForConfig(config())
		require.NoError(t, err)
		w := &worker{t: t, number: i, maps: client.ConfigMaps("default")}
		all.Go(func() {
			for ctx.Err() == nil {
				if err := w.round(context.WithoutCancel(ctx)); err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
				made.Add(1)
			}
		})
	}
	stop = func() int64 { cancel(); all.Wait(); return made.Load() }
	t.Cleanup(func() { stop() })
	return stop
}

// round makes one round of requests and asserts that versions never decrease, whichever server answers.
func (w *worker) round(ctx context.Context) error {
	w.writes++
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%d-%d", w.number, w.writes)}}
	m, err := w.maps.Create(ctx, m, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := w.see(m.ResourceVersion, 1); err != nil {
		return err
	}
	m.Data = map[string]string{"n": strconv.Itoa(w.writes)}
	if m, err = w.maps.Update(ctx, m, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := w.see(m.ResourceVersion, 1); err != nil {
		return err
	}
	got, err := w.maps.Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil || got.ResourceVersion != m.ResourceVersion {
		return fmt.Errorf("%s: version %s was written and %s is there: %w", m.Name, m.ResourceVersion, got.ResourceVersion, err)
	}
	list, err := w.maps.List(ctx, metav1.ListOptions{LabelSelector: "none=of-these"})
	if err != nil {
		return err
	}
	if err := w.see(list.ResourceVersion, 0); err != nil {
		return err
	}
	if err := w.maps.Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err = w.maps.Get(ctx, m.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s was deleted: %w", m.Name, err)
	}
	return nil
}

// see records a version, which must be newer than the newest by at least the given number.
func (w *worker) see(version string, by uint64) error {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil || v < w.newest+by {
		return fmt.Errorf("version %q after %d", version, w.newest)
	}
	w.newest = v
	return nil
}

// TestRollingRestart: three servers are shut down and restarted in turn, under load through a balancer.
// No request fails, not even without retries, and no informer lists again, misses a change or reports a
// change twice.
func TestRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	_, servers := testbed.StartCluster(t, "--shutdown-delay-duration", "3s")
	b := testbed.NewBalancer(t, servers)
	var informers []*testbed.Informer
	for range 6 {
		informers = append(informers, testbed.StartInformer(t, b.Config()))
	}
	l := testbed.StartLoad(t, b.Clients(8), 6, testbed.State{})
	stop := startWorkers(t, 8, b.Config)
	l.Progress(some)
	for _, p := range servers {
		p.Terminate()
		l.Progress(some)
		p.Restart()
		l.Progress(some)
	}
	rounds := stop()
	l.Check(informers...)
	resumed := int64(0)
	for _, i := range informers {
		resumed += i.Resumed()
	}
	t.Logf("%d rounds of workers, informers resumed their watches %d times", rounds, resumed)
	require.NotZero(t, resumed)
	require.Zero(t, l.Failed(), "failed requests without retries")
}
