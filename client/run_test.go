package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// configMaps defines ConfigMap of the core group.
func configMaps(t *testing.T) *registry.Kind {
	kinds := core.Kinds()
	i := slices.IndexFunc(kinds, func(k *registry.Kind) bool { return k.Kind == "ConfigMap" })
	require.GreaterOrEqual(t, i, 0)
	return kinds[i]
}

func TestRunBacksOffAfterErrorsAndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		lamps := asJane(newServer(t)).In("default")
		metrics := prometheus.NewRegistry()
		var mu sync.Mutex // guards at
		var at []time.Duration
		begun := time.Now()
		controller := client.Controller{
			Name: "fails", MapEvent: keysOf, Workers: 1,
			Reconcile: func(context.Context, client.Client, string) (time.Duration, error) {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(begun))
				switch len(at) {
				case 2:
					panic("at the disco")
				case 15:
					return time.Hour, nil
				}
				return 0, errors.New("no")
			},
		}
		stop := runController(t, lamps, client.RunOptions{Metrics: metrics}, controller)
		_, err := lamps.Create(ctx, newLamp("desk", 1))
		require.NoError(t, err)
		calls := func() []time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(at)
		}
		time.Sleep(10 * time.Minute)
		at10 := calls()
		require.Len(t, at10, 15)
		last := time.Duration(0)
		for i := 1; i < len(at10); i++ {
			pause := at10[i] - at10[i-1]
			assert.True(t, pause >= last && pause <= 30*time.Second, "%v", at10)
			last = pause
		}
		assert.Equal(t, 30*time.Second, last)
		time.Sleep(time.Hour)
		assert.GreaterOrEqual(t, len(calls()), 16, "it asked for that")
		stop()
		families, err := metrics.Gather()
		require.NoError(t, err)
		counts := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				key := f.GetName()
				for _, l := range m.GetLabel() {
					key += " " + l.GetValue()
				}
				if counts[key] = m.GetCounter().GetValue(); m.GetHistogram() != nil {
					counts[key] = float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
		n := float64(len(calls()))
		assert.Equal(t, map[string]float64{
			"controlplane_reconcile_total fails panic": 1, "controlplane_reconcile_total fails success": 1, "controlplane_reconcile_total fails error": n - 2,
			"workqueue_adds_total fails": 1, "workqueue_retries_total fails": n - 1, // keys that wait for their time are not retries
			"workqueue_queue_duration_seconds fails": n, "workqueue_work_duration_seconds fails": n,
		}, counts, "a queue that ended tells no depth")
	})
}

func TestRunChecksControllers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := client.New(client.Of[Lamp](client.Conn{}, registry.Of(lamp)))
	require.NoError(t, err)
	whole := client.Controller{
		Name: "a", MapEvent: keysOf, Types: []meta.GroupResource{{Group: "example.com", Resource: "lamps"}},
		Reconcile: func(context.Context, client.Client, string) (time.Duration, error) { return 0, nil },
	}
	metrics := prometheus.NewRegistry()
	assert.NoError(t, client.Run(ctx, c, client.RunOptions{Metrics: metrics}, whole))
	assert.NoError(t, client.Run(ctx, c, client.RunOptions{Metrics: metrics}, whole), "controllers share the metrics")
	for want, spoil := range map[string]func(*client.Controller){
		"controller without a name":      func(c *client.Controller) { c.Name = "" },
		"controller a: MapEvent is nil":  func(c *client.Controller) { c.MapEvent = nil },
		"controller a: Reconcile is nil": func(c *client.Controller) { c.Reconcile = nil },
		"controller a: resource lamps.other.example is not served": func(c *client.Controller) {
			c.Types = []meta.GroupResource{{Group: "other.example", Resource: "lamps"}}
		},
	} {
		k := whole
		spoil(&k)
		assert.EqualError(t, client.Run(ctx, c, client.RunOptions{}, whole, k), want)
	}
	metrics = prometheus.NewRegistry()
	metrics.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "controlplane_reconcile_total"}))
	assert.ErrorContains(t, client.Run(ctx, c, client.RunOptions{Metrics: metrics}, whole), "metrics of controllers")
	_, err = client.New(client.Of[Lamp](client.Conn{}, nil))
	assert.Error(t, err)
}

func TestRunMapsOwnedObjectsOfOldAndNewOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := newServer(t)
		lamps := asJane(s).In("default")
		maps := client.Of[core.ConfigMap](s.Conn(auth.User{Name: "jane"}), configMaps(t)).In("default")
		a, err := lamps.Create(ctx, newLamp("a", 1))
		require.NoError(t, err)
		b, err := lamps.Create(ctx, newLamp("b", 1))
		require.NoError(t, err)
		asked := make(chan string, 100)
		stop := runController(t, maps, client.RunOptions{}, client.Controller{
			Name: "owners",
			MapEvent: func(e client.Event) []string {
				if e.Object != nil && e.Object.String("data", "panic") != "" {
					panic(e.Key)
				}
				return e.Owners(meta.GroupKind{Group: "example.com", Kind: "Lamp"}, registry.Namespaced)
			},
			Reconcile: func(_ context.Context, _ client.Client, key string) (time.Duration, error) {
				asked <- key
				return time.Hour, nil
			},
		})
		owned := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "m", OwnerReferences: []meta.OwnerReference{
			{APIVersion: "example.com/v1", Kind: "Lamp", Name: "a", UID: a.UID}, {APIVersion: "other.example/v1", Kind: "Lamp", Name: "z", UID: "z"},
		}}}
		_, err = maps.Create(ctx, owned)
		require.NoError(t, err)
		panics := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "p", OwnerReferences: owned.OwnerReferences}, Data: map[string]string{"panic": "yes"}}
		_, err = maps.Create(ctx, panics)
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"default/a"}, drain(asked), "a change at which MapEvent panics is skipped")
		_, err = maps.Modify(ctx, "m", func(m *core.ConfigMap) error {
			m.OwnerReferences = []meta.OwnerReference{{APIVersion: "example.com/v1", Kind: "Lamp", Name: "b", UID: b.UID}}
			return nil
		})
		require.NoError(t, err)
		synctest.Wait()
		assert.ElementsMatch(t, []string{"default/a", "default/b"}, drain(asked))
		time.Sleep(61 * time.Minute)
		assert.ElementsMatch(t, []string{"default/a", "default/b"}, drain(asked))
		stop()
	})
}

// TestClientOverHTTP covers the methods of Client for objects without structs.
func TestClientOverHTTP(t *testing.T) {
	ctx, s := t.Context(), newServer(t)
	maps := meta.GroupResource{Resource: "configmaps"}
	lamps := meta.GroupResource{Group: "example.com", Resource: "lamps"}
	conn := s.Conn(auth.User{Name: "jane"})
	c, err := client.New(client.Of[meta.Object](conn, registry.Of(lamp)).In("elsewhere"), client.Of[core.ConfigMap](conn, configMaps(t)).In("default"))
	require.NoError(t, err)
	feed := c.Feed(maps)
	defer feed.Close()

	created, err := c.Create(ctx, lamps, meta.NewObject(map[string]any{"metadata": map[string]any{"name": "desk", "namespace": "default"}}))
	require.NoError(t, err)
	assert.Equal(t, "Lamp", created.Kind())
	key := meta.Key{Namespace: "default", Name: "desk"}
	updated, err := c.Update(ctx, lamps, key, "status", func(o *meta.Object) error {
		o.Set(true, "status", "burnt")
		return nil
	})
	require.NoError(t, err)
	assert.True(t, updated.Bool("status", "burnt"))
	_, err = c.Update(ctx, lamps, key, "", func(o *meta.Object) error {
		o.Set(5, "spec", "watts")
		o.Delete("spec", "color") // the server sets the default again
		return nil
	})
	require.NoError(t, err)
	got, err := c.Get(ctx, lamps, key)
	require.NoError(t, err)
	assert.EqualValues(t, 5, got.Int("spec", "watts"))
	assert.Equal(t, "white", got.String("spec", "color"))
	list, err := c.List(ctx, lamps, "")
	require.NoError(t, err)
	assert.Len(t, list, 1)
	require.NoError(t, c.Delete(ctx, lamps, key, registry.DeleteOptions{UID: got.UID()}))
	_, err = c.Get(ctx, lamps, key)
	assert.True(t, meta.IsNotFound(err))
	_, err = c.Get(ctx, meta.GroupResource{Resource: "pods"}, key)
	assert.True(t, meta.IsNotFound(err), "a resource of no scope")

	_, err = c.Create(ctx, maps, meta.NewObject(map[string]any{"metadata": map[string]any{"name": "m", "namespace": "default"}}))
	require.NoError(t, err)
	for {
		require.NoError(t, feed.Wait(ctx))
		changes, reset := feed.Changes()
		assert.False(t, reset)
		if list := slices.Collect(changes); len(list) > 0 {
			e := list[len(list)-1]
			assert.Equal(t, maps, e.Resource)
			assert.Equal(t, meta.Key{Namespace: "default", Name: "m"}, e.Key)
			assert.Nil(t, e.Old)
			assert.Equal(t, feed.Revision(), e.Revision)
			assert.Equal(t, feed.Newest(), e.Revision)
			return
		}
	}
}

func TestRunWaitsForReconcile(t *testing.T) {
	lamps := asJane(newServer(t)).In("default")
	begun, ended := make(chan struct{}), false
	stop := runController(t, lamps, client.RunOptions{}, client.Controller{Name: "slow", MapEvent: keysOf, Reconcile: func(ctx context.Context, _ client.Client, _ string) (time.Duration, error) {
		close(begun)
		<-ctx.Done()
		ended = true
		return 0, ctx.Err()
	}})
	_, err := lamps.Create(t.Context(), newLamp("desk", 1))
	require.NoError(t, err)
	<-begun
	stop()
	assert.True(t, ended)
}
