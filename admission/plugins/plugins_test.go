package plugins_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// builtin returns the chain of a server with an empty store.
func builtin(t testing.TB, o admission.Options, own ...admission.Plugin) *admission.Chain {
	c, err := admission.New(plugins.Table(own...), o, admission.PluginContext{
		Names: names.Kubernetes, Authorizer: auth.AllowAll, Client: &testclient.Client{},
		Type: func(meta.GroupResource) *registry.Type { return &registry.Type{} },
	})
	require.NoError(t, err)
	return c
}

func update(resource string) *admission.Request {
	return &admission.Request{Operation: admission.Update, Resource: meta.GroupVersionResource{Version: "v1", Resource: resource},
		Namespace: "default", Name: "x", Object: meta.NewObject(nil), Old: meta.NewObject(nil)}
}

// BenchmarkChain measures admission of a write that no plugin selects.
func BenchmarkChain(b *testing.B) {
	c, r, ctx := builtin(b, admission.Options{}), update("configmaps"), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if c.Mutate(ctx, r) != nil || c.Validate(ctx, r) != nil {
			b.Fatal("refused")
		}
	}
}

// TestNamespaceLifecycle checks that objects cannot be created in missing and terminating namespaces, and
// that the default namespaces cannot be deleted, unless the plugin is disabled.
func TestNamespaceLifecycle(t *testing.T) {
	ctx := context.Background()
	configMap := func(namespace string) *meta.Object {
		o := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "x", "namespace": namespace, "finalizers": []any{"a.b/c"}}})
		return o
	}
	configMaps, namespaces := meta.GroupResource{Resource: "configmaps"}, meta.GroupResource{Resource: "namespaces"}

	on := servertest.New(t).Objects()
	_, err := on.Create(ctx, configMaps, configMap("missing"))
	assert.True(t, meta.IsNotFound(err), err)
	assert.ErrorContains(t, on.Delete(ctx, namespaces, meta.Key{Name: "default"}, registry.DeleteOptions{}), "this namespace may not be deleted")
	_, err = on.Create(ctx, namespaces, meta.NewObject(map[string]any{"metadata": map[string]any{"name": "going"}}))
	require.NoError(t, err)
	_, err = on.Create(ctx, configMaps, configMap("going"))
	require.NoError(t, err)
	require.NoError(t, on.Delete(ctx, namespaces, meta.Key{Name: "going"}, registry.DeleteOptions{}))
	late := configMap("going")
	late.SetName("late")
	_, err = on.Create(ctx, configMaps, late)
	assert.ErrorContains(t, err, `configmaps "late" is forbidden: unable to create new content in namespace going because it is being terminated`)

	off := servertest.New(t, func(b *server.Builder) {
		b.AdmissionOptions = admission.Options{Disable: []string{"NamespaceLifecycle"}}
	}).Objects()
	_, err = off.Create(ctx, configMaps, configMap("missing"))
	assert.NoError(t, err)
}

// TestTaintNodes checks that a new node is tainted as not ready once, even if it has the taint already.
func TestTaintNodes(t *testing.T) {
	ctx, chain := context.Background(), builtin(t, admission.Options{})
	notReady := map[string]any{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
	other := map[string]any{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
	for _, tc := range []struct{ taints, want []any }{
		{nil, []any{notReady}},
		{[]any{other}, []any{other, notReady}},
		{[]any{notReady, other}, []any{notReady, other}},
	} {
		r := update("nodes")
		r.Operation, r.Namespace, r.Old = admission.Create, "", nil
		r.Object.Set(tc.taints, "spec", "taints")
		require.NoError(t, chain.Mutate(ctx, r))
		assert.Equal(t, tc.want, r.Object.List("spec", "taints"))
	}
}

// TestEscalationCannotBeDisabled checks that a server with an RBAC authorizer cannot disable RBACEscalation.
func TestEscalationCannotBeDisabled(t *testing.T) {
	_, err := admission.New(plugins.Table(plugins.RBACEscalation(nil)), admission.Options{Disable: []string{"RBACEscalation"}}, admission.PluginContext{})
	assert.EqualError(t, err, "the admission plugin RBACEscalation cannot be disabled")
}
