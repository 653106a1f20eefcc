package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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

// configMaps is the kind of the core group.
func configMaps(t *testing.T) *registry.Kind {
	kinds := core.Kinds()
	i := slices.IndexFunc(kinds, func(k *registry.Kind) bool { return k.Kind == "ConfigMap" })
	require.GreaterOrEqual(t, i, 0)
	return kinds[i]
}

// TestControllerBacksOff after errors and panics, which it counts, and starts anew when
// something changes.
func TestControllerBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		lamps := asJane(newServer(t)).In("default")
		cache := lamps.Cache()
		metrics := prometheus.NewRegistry()
		var mu sync.Mutex // guards at
		var at []time.Duration
		begun := time.Now()
		controller := client.Controller{
			Name: "fails", Sources: []client.Source{client.Each(cache)}, Metrics: metrics, Workers: 1,
			Reconcile: func(context.Context, meta.Key) (time.Duration, error) {
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
		run(t, cache)
		stop := run(t, controller)
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
			"workqueue_adds_total fails": 1, "workqueue_retries_total fails": n - 1, // those that wait for their time are no retries
			"workqueue_queue_duration_seconds fails": n, "workqueue_work_duration_seconds fails": n,
		}, counts, "a queue that ended tells no depth")
	})
}

// TestControllersShareAMetric, and each says what it lacks.
func TestControllersShareAMetric(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cache := client.Of[Lamp](client.Conn{}, registry.Of(lamp)).Cache()
	whole := client.Controller{
		Name: "a", Sources: []client.Source{client.Each(cache)}, Metrics: prometheus.NewRegistry(),
		Reconcile: func(context.Context, meta.Key) (time.Duration, error) { return 0, nil },
	}
	assert.NoError(t, whole.Run(ctx))
	assert.NoError(t, whole.Run(ctx))
	for _, spoil := range []func(*client.Controller){
		func(c *client.Controller) { c.Name = "" },
		func(c *client.Controller) { c.Sources = nil },
		func(c *client.Controller) { c.Reconcile = nil },
		func(c *client.Controller) {
			r := prometheus.NewRegistry()
			r.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "controlplane_reconcile_total"}))
			c.Metrics = r
		},
	} {
		c := whole
		spoil(&c)
		assert.Error(t, c.Run(ctx))
	}
}

// TestOwnersAreToldOfWhatTheyOwn, whose owner changes, too; and resync tells of all.
func TestOwnersAreToldOfWhatTheyOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := newServer(t)
		lamps := asJane(s).In("default")
		maps := client.Of[core.ConfigMap](s.Conn(auth.User{Name: "jane"}), configMaps(t)).In("default")
		a, err := lamps.Create(ctx, newLamp("a", 1))
		require.NoError(t, err)
		b, err := lamps.Create(ctx, newLamp("b", 1))
		require.NoError(t, err)
		cache := maps.Cache()
		asked := make(chan meta.Key, 100)
		ran := make(chan struct{})
		var inTheEnd atomic.Int32
		controller := client.Controller{
			Name: "owners", Resync: time.Hour,
			Sources: []client.Source{client.Owned(cache, lamps), client.Mapped(cache, func(key meta.Key, m *core.ConfigMap) []meta.Key {
				if m.Data["panic"] != "" {
					panic(key)
				}
				return nil
			})},
			Reconcile: func(ctx context.Context, key meta.Key) (time.Duration, error) {
				asked <- key
				return 0, nil
			},
		}
		ctx2, cancel := context.WithCancel(ctx)
		go func() {
			defer close(ran)
			assert.NoError(t, client.Run(ctx2, cache, controller))
			inTheEnd.Add(1)
		}()
		owned := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "m", OwnerReferences: []meta.ObjectOwner{
			{APIVersion: "example.com/v1", Kind: "Lamp", Name: "a", UID: a.UID}, {APIVersion: "other.example/v1", Kind: "Lamp", Name: "z", UID: "z"},
		}}}
		_, err = maps.Create(ctx, owned)
		require.NoError(t, err)
		synctest.Wait()
		keyA, keyB := meta.Key{Namespace: "default", Name: "a"}, meta.Key{Namespace: "default", Name: "b"}
		assert.Equal(t, []meta.Key{keyA}, drain(asked))
		_, err = maps.Modify(ctx, "m", func(m *core.ConfigMap) error {
			m.OwnerReferences = []meta.ObjectOwner{{APIVersion: "example.com/v1", Kind: "Lamp", Name: "b", UID: b.UID}}
			m.Data = map[string]string{"panic": "yes"}
			return nil
		})
		require.NoError(t, err)
		synctest.Wait()
		assert.ElementsMatch(t, []meta.Key{keyA, keyB}, drain(asked), "who lost it is told as well")
		time.Sleep(61 * time.Minute)
		assert.Equal(t, []meta.Key{keyB}, drain(asked))
		cancel()
		<-ran
		assert.EqualValues(t, 1, inTheEnd.Load())
	})
}

// TestRunEndsAllWithOne of its parts.
func TestRunEndsAllWithOne(t *testing.T) {
	cache := asJane(newServer(t)).Cache()
	err := client.Run(t.Context(), cache, client.Controller{Name: "empty"})
	assert.ErrorContains(t, err, "controller empty has no Reconcile")
}

// TestControllerWaitsForItsWork to end.
func TestControllerWaitsForItsWork(t *testing.T) {
	lamps := asJane(newServer(t)).In("default")
	cache := lamps.Cache()
	begun, ended := make(chan struct{}), false
	run(t, cache)
	stop := run(t, client.Controller{Name: "slow", Sources: []client.Source{client.Each(cache)}, Reconcile: func(ctx context.Context, _ meta.Key) (time.Duration, error) {
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
