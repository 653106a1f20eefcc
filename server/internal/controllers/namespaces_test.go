package controllers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/testclient"
)

// slow is a collection of a server that does not answer.
type slow struct{ asked chan string }

func (s slow) Delete(ctx context.Context, namespace string) error {
	s.asked <- namespace
	<-ctx.Done()
	return ctx.Err()
}

func (s slow) Left(context.Context, string) (Remaining, error) { return Remaining{}, nil }

// all is a client of a server that has all types of which there are objects.
type all struct{ client.Client }

func (all) Unknown(context.Context, string) (map[meta.GroupResource]int, error) { return nil, nil }

// TestSlowServersHoldFewNamespaces: a server that does not answer holds no more of those who
// empty namespaces than it may; the others come back later, and their namespaces stay.
func TestSlowServersHoldFewNamespaces(t *testing.T) {
	s := slow{make(chan string)}
	cl := &testclient.Client{}
	c := Namespaces(names.Kubernetes, all{cl}, func() ([]Collection, []error) { return []Collection{s}, nil })
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		cl.Put("namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "spec": map[string]any{"finalizers": []any{"kubernetes"}},
			"metadata": map[string]any{"name": name, "uid": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, maxForeign)
	for _, name := range []string{"a", "b", "c", "d"} {
		go func() {
			_, err := c.Reconcile(ctx, cl, name)
			ended <- err
		}()
		assert.Equal(t, name, <-s.asked)
	}
	again, err := c.Reconcile(t.Context(), cl, "e")
	require.NoError(t, err)
	assert.Equal(t, unseenAgain, again)
	cancel()
	for range maxForeign {
		assert.ErrorIs(t, <-ended, context.Canceled)
	}
	e, err := cl.Get(t.Context(), namespaces, meta.Key{Name: "e"})
	require.NoError(t, err)
	assert.Equal(t, []any{"kubernetes"}, e.List("spec", "finalizers"))
}
