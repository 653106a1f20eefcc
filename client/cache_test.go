package client_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
)

// keysOf maps each change to the key of its object.
func keysOf(e client.Event) []string { return []string{e.Key.String()} }

type runFunc func(ctx context.Context) error

func (f runFunc) Run(ctx context.Context) error { return f(ctx) }

// runController runs a controller of some objects until the test ends.
func runController(t *testing.T, objects client.Scope, o client.RunOptions, k client.Controller) (stop func()) {
	c, err := client.New(objects)
	require.NoError(t, err)
	return run(t, runFunc(func(ctx context.Context) error { return client.Run(ctx, c, o, k) }))
}

// run runs r until the test ends.
func run(t *testing.T, r interface {
	Run(ctx context.Context) error
}) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ran)
	})
	t.Cleanup(stop)
	return stop
}

func keysIn(c *client.Cache[Lamp], namespace string) (names []string) {
	all := c.All()
	if namespace != "" {
		all = c.In(namespace)
	}
	for key := range all {
		names = append(names, key.String())
	}
	return names
}

func TestCacheReflectsServer(t *testing.T) {
	ctx := t.Context()
	s := newServer(t)
	lamps := asJane(s)
	for _, name := range []string{"b", "a"} {
		_, err := lamps.Create(ctx, newLamp(name, 1))
		require.NoError(t, err)
	}
	cache := lamps.Cache()
	assert.Zero(t, cache.Len())
	run(t, cache)
	require.NoError(t, cache.Wait(ctx))
	assert.Error(t, cache.Run(ctx), "the cache is already running")
	assert.Equal(t, []string{"default/a", "default/b"}, keysIn(cache, ""))
	assert.Equal(t, []string{"default/a", "default/b"}, keysIn(cache, "default"))
	assert.Empty(t, keysIn(cache, "defaul"))

	before, ok := cache.Get(meta.Key{Namespace: "default", Name: "a"})
	assert.True(t, ok)
	changed, err := lamps.In("default").Patch(ctx, "a", client.MergePatch(map[string]any{"spec": map[string]any{"watts": 7}}))
	require.NoError(t, err)
	require.NoError(t, cache.WaitFor(ctx, changed.ResourceVersion))
	after, _ := cache.Get(meta.Key{Namespace: "default", Name: "a"})
	assert.Equal(t, 7, after.Spec.Watts, "at least as new as the write")
	assert.Equal(t, 1, before.Spec.Watts, "an object that was read does not change")
	again, _ := cache.Get(meta.Key{Namespace: "default", Name: "a"})
	assert.Same(t, after, again, "no copy")
	assert.Error(t, cache.WaitFor(ctx, "soon"))
	for key := range cache.All() { // changes during the iteration do not affect it
		require.NoError(t, lamps.In(key.Namespace).Delete(ctx, key.Name, registry.DeleteOptions{}))
	}
}

func TestCacheAndFeedResumeAfterLostHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := newServer(t)
		steady := asJane(s).In("default")
		lamps, line := overLine(s)
		for _, name := range []string{"stays", "goes"} {
			_, err := steady.Create(ctx, newLamp(name, 1))
			require.NoError(t, err)
		}
		cache := lamps.Cache()
		asked := make(chan string, 100)
		run(t, cache)
		runController(t, lamps, client.RunOptions{}, client.Controller{Name: "c", MapEvent: keysOf, Reconcile: func(_ context.Context, _ client.Client, key string) (time.Duration, error) {
			asked <- key
			return 0, nil
		}})
		synctest.Wait()
		assert.Len(t, drain(asked), 2)
		line.set(true)
		require.NoError(t, steady.Delete(ctx, "goes", registry.DeleteOptions{}))
		for _, name := range []string{"comes", "came"} {
			time.Sleep(20 * time.Minute)
			_, err := steady.Create(ctx, newLamp(name, 1))
			require.NoError(t, err)
		}
		time.Sleep(20 * time.Minute)
		assert.Equal(t, []string{"default/goes", "default/stays"}, keysIn(cache, ""), "it holds what it has")
		short, cancel := context.WithTimeout(ctx, time.Second)
		assert.ErrorIs(t, cache.WaitFor(short, "99999"), context.DeadlineExceeded)
		cancel()
		line.set(false)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"default/came", "default/comes", "default/stays"}, keysIn(cache, ""))
		keys := drain(asked)
		assert.Contains(t, keys, "default/goes")
		assert.Contains(t, keys, "default/came")
	})
}

func drain(c chan string) (keys []string) {
	for {
		select {
		case k := <-c:
			keys = append(keys, k)
		default:
			return keys
		}
	}
}

// TestCacheRetriesUntilServerIsReachable checks that Wait returns the reason while the server is
// unreachable, and succeeds later.
func TestCacheRetriesUntilServerIsReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lamps, line := overLine(newServer(t))
		line.set(true)
		cache := lamps.Cache()
		run(t, cache)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		err := cache.Wait(ctx)
		cancel()
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, errDown)
		assert.ErrorContains(t, err, "in the cache of lamps.example.com")
		assert.Less(t, line.requests(), 300)
		line.set(false)
		assert.NoError(t, cache.Wait(t.Context()))
	})
}

// TestCacheWithSelectorSeesOtherVersions checks that WaitFor works with the version of an object
// that the cache does not select.
func TestCacheWithSelectorSeesOtherVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lamps := asJane(newServer(t)).In("default")
		cache := lamps.WithLabels("a=b").Cache()
		run(t, cache)
		other, err := lamps.Create(t.Context(), newLamp("other", 1))
		require.NoError(t, err)
		assert.NoError(t, cache.WaitFor(t.Context(), other.ResourceVersion))
		assert.Zero(t, cache.Len())
	})
}

// TestCacheConcurrentReads reads a cache while it changes, for the race detector.
func TestCacheConcurrentReads(t *testing.T) {
	ctx := t.Context()
	lamps := asJane(newServer(t)).In("default")
	cache := lamps.Cache()
	run(t, cache)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 25 {
				l, err := lamps.Create(ctx, newLamp(fmt.Sprintf("l%d-%d", i, n), 1))
				if !assert.NoError(t, err) || !assert.NoError(t, cache.WaitFor(ctx, l.ResourceVersion)) {
					return
				}
				_, ok := cache.Get(meta.Key{Namespace: "default", Name: l.Name})
				assert.True(t, ok)
				assert.True(t, slices.IsSorted(keysIn(cache, "default")))
			}
		})
	}
	all.Wait()
	assert.Equal(t, 100, cache.Len())
}

func TestCacheOfInvalidOrUnknownKind(t *testing.T) {
	assert.Error(t, client.Of[Lamp](client.Conn{}, nil).Cache().Run(t.Context()))
	s := newServer(t)
	gone := client.Of[Lamp](s.Conn(auth.User{Name: "jane"}), registry.Of(registry.Definition[Lamp]{Group: "nowhere.example", Version: "v1"})).Cache()
	stop := run(t, gone)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Error(t, gone.Wait(ctx))
	stop()
}
