package plugins_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/servertest"
)

// TestDeviceAdminAccess checks that claims and allocations with admin access need the label on the namespace.
func TestDeviceAdminAccess(t *testing.T) {
	ctx, client := t.Context(), servertest.New(t).Objects()
	resource := func(plural string) meta.GroupResource {
		return meta.GroupResource{Group: "resource.k8s.io", Resource: plural}
	}
	for name, label := range map[string]string{"plain": "yes", "admin": "true"} {
		_, err := client.Create(ctx, meta.GroupResource{Resource: "namespaces"}, meta.NewObject(map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]any{"resource.kubernetes.io/admin-access": label}},
		}))
		require.NoError(t, err)
	}
	spec := func(admin bool) map[string]any {
		return map[string]any{"devices": map[string]any{"requests": []any{
			map[string]any{"name": "a", "exactly": map[string]any{"deviceClassName": "c", "adminAccess": admin}},
		}}}
	}
	create := func(plural, namespace, name string, spec map[string]any) error {
		_, err := client.Create(ctx, resource(plural), meta.NewObject(map[string]any{
			"metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec,
		}))
		return err
	}
	allocate := func(namespace string) error {
		_, err := client.Update(ctx, resource("resourceclaims"), meta.Key{Namespace: namespace, Name: "x"}, "status", func(o *meta.Object) error {
			o.Set([]any{map[string]any{"request": "a", "driver": "d.io", "pool": "p", "device": "d", "adminAccess": true}}, "status", "allocation", "devices", "results")
			return nil
		})
		return err
	}
	const why = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label"
	require.NoError(t, create("resourceclaims", "plain", "x", spec(false)))
	assert.ErrorContains(t, create("resourceclaims", "plain", "y", spec(true)), "spec.devices.requests[0].adminAccess: Forbidden: "+why)
	assert.ErrorContains(t, create("resourceclaimtemplates", "plain", "y", map[string]any{"spec": spec(true)}), "spec.devices.requests[0].adminAccess: Forbidden: "+why)
	assert.ErrorContains(t, allocate("plain"), "status.allocation.devices.results[0].adminAccess: Forbidden: "+why)

	require.NoError(t, create("resourceclaims", "admin", "x", spec(true)))
	require.NoError(t, create("resourceclaimtemplates", "admin", "x", map[string]any{"spec": spec(true)}))
	require.NoError(t, allocate("admin"))
}
