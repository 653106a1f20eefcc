package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/server/serving"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// shared is a store that several servers use; their shutdown does not close it.
type shared struct{ storage.Backend }

func (shared) Close() error { return nil }

// serve runs a server with a store and returns a connection as its administrator.
func serve(t *testing.T, store storage.Backend, ca *serving.Authority) client.Conn {
	t.Helper()
	s, err := build(t.Context(), store, ca, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		assert.NoError(t, s.Shutdown(context.Background()))
		assert.NoError(t, <-ran)
	})
	<-s.Running()
	return s.Conn(auth.User{Name: "admin", Groups: []string{auth.Masters}})
}

// TestQuotaHoldsAcrossTwoServers: 16 writers on two servers of one store create jars of 10 liters for a
// shelf of 100, resize them by updates and by the subresource scale, and change the shelf.
func TestQuotaHoldsAcrossTwoServers(t *testing.T) {
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	ca, err := serving.LoadAuthority(t.TempDir())
	require.NoError(t, err)
	var jars []*client.Objects[Jar]
	var shelves *client.Objects[Shelf]
	for range 2 {
		conn, kinds := serve(t, shared{store}, ca), quotaKinds()
		jars, shelves = append(jars, client.Of[Jar](conn, kinds[0]).In("default")), client.Of[Shelf](conn, kinds[1])
	}
	_, err = shelves.Create(t.Context(), &Shelf{ObjectMeta: meta.ObjectMeta{Name: "default"}, Liters: 100})
	require.NoError(t, err)

	var made atomic.Int64
	atOnce := func(work func(i int, jars *client.Objects[Jar]) error) {
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				err := work(i, jars[i%2])
				if err == nil {
					made.Add(1)
				} else if meta.ReasonOf(err) != meta.ReasonForbidden && !meta.IsNotFound(err) {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	atOnce(func(i int, jars *client.Objects[Jar]) error {
		_, err := jars.Create(t.Context(), &Jar{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprint("jam-", i)}, Spec: JarSpec{Liters: 10}})
		return err
	})
	assert.EqualValues(t, 10, made.Load())

	_, err = shelves.Modify(t.Context(), "default", func(s *Shelf) error { s.Liters = 99; return nil })
	assert.ErrorContains(t, err, "the jars of default would hold 100 liters, the shelf has room for 99")

	made.Store(0)
	_, err = shelves.Modify(t.Context(), "default", func(s *Shelf) error { s.Liters = 105; return nil })
	require.NoError(t, err)
	atOnce(func(i int, jars *client.Objects[Jar]) error {
		_, err := jars.Modify(t.Context(), fmt.Sprint("jam-", i), func(j *Jar) error { j.Spec.Liters++; return nil })
		return err
	})
	assert.EqualValues(t, 5, made.Load())

	made.Store(0)
	_, err = shelves.Modify(t.Context(), "default", func(s *Shelf) error { s.Liters = 110; return nil })
	require.NoError(t, err)
	atOnce(func(i int, jars *client.Objects[Jar]) error {
		jar, err := jars.Get(t.Context(), fmt.Sprint("jam-", i))
		if err != nil {
			return err
		}
		_, err = jars.Subresource("scale").Patch(t.Context(), jar.Name, client.MergePatch(map[string]any{"spec": map[string]any{"replicas": jar.Spec.Liters + 1}}))
		return err
	})
	assert.EqualValues(t, 5, made.Load(), "updates through the subresource scale are counted")
}
