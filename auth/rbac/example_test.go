package rbac_test

import (
	"context"
	"fmt"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

// A server with RBAC and the default roles and bindings.
func Example() {
	ctx := context.Background()
	b := &server.Builder{Names: names.Kubernetes}
	roles := rbac.New(b.Client(), b.Names)
	decide := auth.Chain(auth.Superuser(auth.Masters), roles)
	b.Authorizer = decide
	b.Admission = []admission.Plugin{plugins.RBACEscalation(roles)}
	b.Controllers = []client.Controller{rbac.Aggregator(b.Client(), b.Names)}
	b.Register(builtin.Kinds()...)
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)
	if err := rbac.Reconcile(ctx, s.Objects(), b.Names); err != nil {
		fmt.Println(err)
	}
	anybody := &auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}
	_, reason, _ := decide.Authorize(ctx, auth.Attributes{User: anybody, Verb: "get", Path: "/healthz"})
	fmt.Println(reason)
	// Output: RBAC: allowed by ClusterRoleBinding "system:public-info-viewer" of ClusterRole "system:public-info-viewer" to Group "system:unauthenticated"
}
