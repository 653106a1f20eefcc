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

// slow is a collection of an extension server that does not respond.
type slow struct{ requests chan string }

func (s slow) Delete(ctx context.Context, namespace string) error {
	s.requests <- namespace
	<-ctx.Done()
	return ctx.Err()
}

func (s slow) Remaining(context.Context, string) (Remaining, error) { return Remaining{}, nil }

// all is a client of a server that knows all types.
type all struct{ client.Client }

func (all) Unknown(context.Context, string) (map[meta.GroupResource]int, error) { return nil, nil }

// TestSlowExtensionServersAreLimited: an extension server that does not respond takes at most maxForeign workers. The
// other namespaces are reconciled later and are not deleted.
func TestSlowExtensionServersAreLimited(t *testing.T) {
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
		assert.Equal(t, name, <-s.requests)
	}
	again, err := c.Reconcile(t.Context(), cl, "e")
	require.NoError(t, err)
	assert.Equal(t, pollInterval, again)
	cancel()
	for range maxForeign {
		assert.ErrorIs(t, <-ended, context.Canceled)
	}
	e, err := cl.Get(t.Context(), namespaces, meta.Key{Name: "e"})
	require.NoError(t, err)
	assert.Equal(t, []any{"kubernetes"}, e.List("spec", "finalizers"))
}
