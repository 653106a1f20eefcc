package controllers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
)

// changing is a client of an object that changes after each Get.
type changing struct {
	client.Client
	object *meta.Object
	change func(*meta.Object)
}

func (c *changing) Get(context.Context, meta.GroupResource, meta.Key) (*meta.Object, error) {
	was := c.object.Clone()
	c.change(c.object)
	return was, nil
}

func (c *changing) Update(_ context.Context, _ meta.GroupResource, _ meta.Key, _ string, change func(*meta.Object) error) (*meta.Object, error) {
	now := c.object.Clone()
	if err := change(now); err != nil {
		return nil, err
	}
	c.object = now
	return now, nil
}

// TestFinalizerStaysIfObjectIsUsedWhenWritten: if an object is used again, or was replaced, when the finalizer is to
// be removed, the finalizer stays.
func TestFinalizerStaysIfObjectIsUsedWhenWritten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*meta.Object)
		left   int
	}{
		"unchanged":      {func(*meta.Object) {}, 0},
		"bound":          {func(o *meta.Object) { o.Set("Bound", "status", "phase") }, 1},
		"another, bound": {func(o *meta.Object) { o.Set("new", "metadata", "uid"); o.Set("Bound", "status", "phase") }, 1},
		"another, alive": {func(o *meta.Object) { o.Set("new", "metadata", "uid"); o.Delete("metadata", "deletionTimestamp") }, 1},
	} {
		volume := meta.NewObject(map[string]any{
			"metadata": map[string]any{
				"name": "v", "uid": "u", "deletionTimestamp": "2026-01-01T12:00:00Z",
				"finalizers": []any{names.Kubernetes.Wire(wellknown.VolumeProtection)},
			},
			"status": map[string]any{"phase": "Available"},
		})
		client := &changing{object: volume, change: c.change}
		_, err := VolumeProtection(names.Kubernetes).Reconcile(t.Context(), client, "v")
		require.NoError(t, err, name)
		assert.Len(t, client.object.Finalizers(), c.left, name)
	}
}
