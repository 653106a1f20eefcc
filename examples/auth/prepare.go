package main

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
)

// prepare creates the initial objects: the namespaces of the tenants, and a role with which auditors
// read all notes. It does not change objects that exist already.
func prepare(ctx context.Context, c client.Client) error {
	const rbac = "rbac.authorization.k8s.io"
	namespaces := meta.GroupResource{Resource: "namespaces"}
	for _, o := range []struct {
		of   meta.GroupResource
		tree map[string]any
	}{
		{namespaces, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ann"}}},
		{namespaces, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "bob"}}},
		{meta.GroupResource{Group: rbac, Resource: "clusterroles"}, map[string]any{
			"apiVersion": rbac + "/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "auditor"},
			"rules": []any{map[string]any{
				"verbs": []any{"get", "list", "watch"}, "apiGroups": []any{"example.com"}, "resources": []any{"notes"},
			}},
		}},
		{meta.GroupResource{Group: rbac, Resource: "clusterrolebindings"}, map[string]any{
			"apiVersion": rbac + "/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "auditors"},
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": "auditor"},
			"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "Group", "name": "auditors"}},
		}},
	} {
		if _, err := c.Create(ctx, o.of, meta.NewObject(o.tree)); err != nil && meta.ReasonOf(err) != meta.ReasonAlreadyExists {
			return err
		}
	}
	return nil
}
