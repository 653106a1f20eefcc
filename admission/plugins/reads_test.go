package plugins_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/servertest"
)

// countingClient counts the calls of List and Types.
type countingClient struct {
	client.Client
	lists, types int
}

func (a *countingClient) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	a.lists++
	return a.Client.List(ctx, r, namespace)
}

func (a *countingClient) Types() []*registry.Type {
	a.types++
	return a.Client.Types()
}

// TestPluginReadsDoNotGrowWithInput checks that Priority lists classes only for the default class, and that
// the types are read once for all owner references.
func TestPluginReadsDoNotGrowWithInput(t *testing.T) {
	s := servertest.New(t)
	client := &countingClient{Client: s.Objects()}
	env := &admission.PluginContext{Names: names.Kubernetes, Authorizer: auth.AllowAll, Client: client, Type: func(r meta.GroupResource) *registry.Type {
		list := s.Objects().Types()
		if i := slices.IndexFunc(list, func(t *registry.Type) bool { return t.GroupResource() == r }); i >= 0 {
			return list[i]
		}
		return nil
	}}
	plugin := func(name string) admission.Plugin {
		table := plugins.Table()
		return table[slices.IndexFunc(table, func(p admission.Plugin) bool { return p.Name == name })]
	}
	request := func(resource string, obj *meta.Object) *admission.Request {
		return &admission.Request{Operation: admission.Create, Resource: meta.GroupVersionResource{Version: "v1", Resource: resource}, Namespace: "default",
			Object: obj, User: &auth.User{}, Server: env}
	}
	for name, lists := range map[string]int{"system-node-critical": 0, "": 1} {
		client.lists = 0
		require.NoError(t, plugin("Priority").Mutate(t.Context(), request("pods", meta.NewObject(map[string]any{
			"spec": map[string]any{"priorityClassName": name},
		}))))
		assert.Equal(t, lists, client.lists, name)
	}
	var owners []any
	for i := range 5 {
		owners = append(owners, map[string]any{"apiVersion": "v1", "kind": "Pod", "name": fmt.Sprint(i), "uid": "u", "blockOwnerDeletion": true})
	}
	require.NoError(t, plugin("OwnerReferencesPermissionEnforcement").Validate(t.Context(), request("configmaps", meta.NewObject(map[string]any{
		"metadata": map[string]any{"ownerReferences": owners},
	}))))
	assert.Equal(t, 1, client.types)
}

// TestOwnerChecksAreDeduplicatedAndBounded checks that the authorizer is called once for an owner and for at
// most maxBlockers owners.
func TestOwnerChecksAreDeduplicatedAndBounded(t *testing.T) {
	s := servertest.New(t)
	var asked int
	env := &admission.PluginContext{Names: names.Kubernetes, Client: s.Objects(), Authorizer: auth.AuthorizerFunc(func(context.Context, auth.Attributes) (auth.Decision, string, error) {
		asked++
		return auth.Allow, "", nil
	})}
	table := plugins.Table()
	plugin := table[slices.IndexFunc(table, func(p admission.Plugin) bool { return p.Name == "OwnerReferencesPermissionEnforcement" })]
	for _, tc := range []struct {
		references, names, asked int
		refused                  string
	}{
		{1000, 3, 3, ""},
		{100, 100, 100, ""},
		{30_000, 30_000, 100, "cannot set blockOwnerDeletion on more than 100 new ownerReferences at once"},
	} {
		var owners []any
		for i := range tc.references {
			owners = append(owners, map[string]any{"apiVersion": "v1", "kind": "Pod", "name": fmt.Sprint(i % tc.names), "uid": fmt.Sprint(i), "blockOwnerDeletion": true})
		}
		asked = 0
		err := plugin.Validate(t.Context(), &admission.Request{Operation: admission.Create, Resource: meta.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Namespace: "default", Object: meta.NewObject(map[string]any{"metadata": map[string]any{"ownerReferences": owners}}), User: &auth.User{}, Server: env})
		assert.Equal(t, tc.asked, asked)
		if tc.refused == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, tc.refused)
		}
	}
}
