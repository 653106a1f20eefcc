package rbac_test

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

// A plugin that stores roles in its own way calls CheckGrant before it writes.
func ExampleAuthorizer_CheckGrant() {
	ctx := context.Background()
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	b.Register(builtin.Kinds()...)
	roles := rbac.New(b.Client(), b.Names)
	defer roles.Close()
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)
	role := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "reader"},
		"rules": []any{map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"secrets"}}}})
	for _, u := range []*auth.User{{Name: "ann", Groups: []string{auth.Masters}}, {Name: "bob"}} {
		err := roles.CheckGrant(ctx, roles, rbac.Grant{User: u, Resource: "clusterroles", Name: "reader", Object: role})
		fmt.Println(u.Name, err == nil, meta.ReasonOf(err) == meta.ReasonForbidden)
	}
	// Output:
	// ann true false
	// bob false true
}
