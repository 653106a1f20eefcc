package policy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/policy"
)

// cluster is a fake client with a pod and its budget. Each read of the pod is followed by the next of
// changes.
type cluster struct {
	pod, budget *meta.Object
	version     int
	changes     []func(pod *meta.Object)
	deleted     *registry.DeleteOptions
}

func (c *cluster) Get(context.Context, meta.GroupResource, meta.Key) (*meta.Object, error) {
	seen := c.pod.Clone()
	if len(c.changes) > 0 {
		c.changes[0](c.pod)
		c.changes = c.changes[1:]
		c.touch()
	}
	return seen, nil
}

func (c *cluster) touch() {
	c.version++
	c.pod.SetResourceVersion(fmt.Sprint(c.version))
}

func (c *cluster) List(context.Context, meta.GroupResource, string) ([]*meta.Object, error) {
	return []*meta.Object{c.budget}, nil
}

func (c *cluster) Update(_ context.Context, r meta.GroupResource, _ meta.Key, _ string, change func(*meta.Object) error) (*meta.Object, error) {
	if r.Resource != "pods" {
		return c.budget, change(c.budget)
	}
	if err := change(c.pod); err != nil {
		return nil, err
	}
	c.touch()
	return c.pod.Clone(), nil
}

func (c *cluster) Delete(_ context.Context, _ meta.GroupResource, _ meta.Key, o registry.DeleteOptions) error {
	c.deleted = &o
	return nil
}

// evict evicts a pod that is pending at the first read.
func evict(t *testing.T, options map[string]any, changes ...func(*meta.Object)) (*cluster, error) {
	t.Helper()
	c := &cluster{version: 1, changes: changes,
		pod:    meta.NewObject(map[string]any{"metadata": map[string]any{"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1"}, "status": map[string]any{"phase": "Pending"}}),
		budget: meta.NewObject(map[string]any{"metadata": map[string]any{"name": "b", "namespace": "ns"}, "spec": map[string]any{"selector": map[string]any{}}}),
	}
	_, err := policy.Evict().Act(t.Context(), &registry.Call{Client: c, Names: names.Kubernetes, Key: meta.Key{Namespace: "ns", Name: "p"},
		Object: meta.NewObject(map[string]any{"metadata": map[string]any{"name": "p"}, "deleteOptions": options})})
	return c, err
}

func code(t *testing.T, err error) int {
	t.Helper()
	var status *meta.Status
	require.ErrorAs(t, err, &status)
	return status.Code
}

func started(pod *meta.Object) {
	pod.Set("Running", "status", "phase")
	pod.SetCondition("Ready", "True", "", "")
}

// TestEvictionOfStartingPod checks that a pending pod needs no budget unless it starts before its
// deletion.
func TestEvictionOfStartingPod(t *testing.T) {
	c, err := evict(t, nil)
	require.NoError(t, err)
	require.Equal(t, c.pod.ResourceVersion(), c.deleted.Version)

	c, err = evict(t, nil, started)
	require.Equal(t, 429, code(t, err))
	require.Nil(t, c.deleted)

	c, err = evict(t, map[string]any{"preconditions": map[string]any{"resourceVersion": "1"}}, started)
	require.True(t, meta.IsConflict(err), "that is the caller's to know")
	require.Nil(t, c.deleted)

	touched := func(*meta.Object) {}
	c, err = evict(t, nil, touched, touched)
	require.NoError(t, err, "it still pends")
	require.NotNil(t, c.deleted)

	busy := make([]func(*meta.Object), 100)
	for i := range busy {
		busy[i] = touched
	}
	c, err = evict(t, nil, busy...)
	require.Equal(t, 429, code(t, err), "another time, perhaps")
	require.Nil(t, c.deleted)
}
