package client_test

import (
	"iter"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// feeds is a Client whose feeds count calls of Changes and simulate lost history.
type feeds struct {
	client.Client
	pulled, opened atomic.Int32
	lost           atomic.Bool
	types          []*registry.Type
}

type feed struct {
	client.Feed
	of    *feeds
	types []meta.GroupResource
}

func (c *feeds) Types() []*registry.Type { return c.types }

func (c *feeds) Feed(r ...meta.GroupResource) client.Feed {
	c.opened.Add(1)
	return &feed{c.Client.Feed(r...), c, r}
}

func (f *feed) Changes() (changes iter.Seq[client.Event], reset bool) {
	f.of.pulled.Add(1)
	changes, reset = f.Feed.Changes()
	if f.of.lost.Swap(false) {
		changes, _ = f.of.Client.Feed(f.types...).Changes()
		return changes, true
	}
	return changes, reset
}

func newNames(c client.Client) *client.Index[map[string]bool] {
	return client.NewIndex(c, []meta.GroupResource{beacons}, func() map[string]bool { return map[string]bool{} },
		func(names map[string]bool, e client.Event) {
			if names[e.Key.Name] = true; e.Object == nil {
				delete(names, e.Key.Name)
			}
		})
}

// TestIndexSkipsUnchangedFeed checks that reading an Index does not call Changes, which takes a
// lock, while its resources are unchanged.
func TestIndexSkipsUnchangedFeed(t *testing.T) {
	other := meta.GroupResource{Group: "example.com", Resource: "chairs"}
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	d := beacon
	d.Kind, d.ShortNames = "Chair", nil
	b.Register(registry.Of(beacon), registry.Of(d))
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Shutdown(t.Context())) }()
	client := &feeds{Client: s.Objects()}
	x := newNames(client)
	defer x.Close()
	has := func(name string) (has bool) {
		x.Read(func(names map[string]bool) { has = names[name] })
		return has
	}
	assert.False(t, has("desk"))
	for range 3 {
		_, err = client.Create(t.Context(), beacons, newBeacon("desk", true))
		assert.NoError(t, err)
		assert.True(t, has("desk"), "what was written is there")
		assert.NoError(t, client.Delete(t.Context(), beacons, meta.Key{Name: "desk"}, registry.DeleteOptions{}))
		assert.False(t, has("desk"))
		pulled := client.pulled.Load()
		chair := newBeacon("chair", false)
		_, err = client.Create(t.Context(), other, chair)
		assert.NoError(t, err)
		assert.False(t, has("desk"))
		assert.NoError(t, client.Delete(t.Context(), other, meta.Key{Name: "chair"}, registry.DeleteOptions{}))
		assert.False(t, has("desk"))
		assert.Equal(t, pulled, client.pulled.Load())
	}
	assert.EqualValues(t, 1, client.opened.Load())
}

// TestIndexPublishesCompleteValue checks that readers without a lock see every acknowledged write
// in the published value, also after lost history.
func TestIndexPublishesCompleteValue(t *testing.T) {
	client := &feeds{Client: newServer(t, func(b *server.Builder) { b.Register(registry.Of(beacon)) }).Objects()}
	client.types = client.Client.Types()
	x := newNames(client)
	defer x.Close()
	var shown atomic.Pointer[map[string]bool]
	x.Publish(func(names map[string]bool) {
		copied := map[string]bool{}
		for name := range names {
			copied[name] = true
		}
		shown.Store(&copied)
	})
	_, err := client.Create(t.Context(), beacons, newBeacon("first", true))
	assert.NoError(t, err)
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			for range 200 {
				_, err := client.Create(t.Context(), beacons, newBeacon(name, true))
				assert.NoError(t, err)
				if name == "d" {
					client.lost.Store(true)
				}
				x.Update()
				assert.Subset(t, *shown.Load(), map[string]bool{"first": true, name: true})
				assert.NoError(t, client.Delete(t.Context(), beacons, meta.Key{Name: name}, registry.DeleteOptions{}))
				x.Update()
				assert.NotContains(t, *shown.Load(), name)
			}
		})
	}
	all.Wait()
}

func TestIndexOfResourceNotServedIsEmpty(t *testing.T) {
	client := &feeds{types: []*registry.Type{{Plural: "others"}}}
	x := newNames(client)
	defer x.Close()
	x.Read(func(names map[string]bool) { assert.Empty(t, names) })
	assert.Zero(t, client.opened.Load())
}
