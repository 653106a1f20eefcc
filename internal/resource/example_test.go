package resource_test

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// Route lists hosts. Each host may occur in one Route of the cluster.
type Route struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Hosts []string `json:"hosts" schema:"items.unique=cluster"`
	} `json:"spec"`
}

// The second object with the same value of a unique field is rejected.
func ExampleDefinition_unique() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(registry.Of(registry.Definition[Route]{Group: "example.com", Version: "v1"}))
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	routes := meta.GroupResource{Group: "example.com", Resource: "routes"}
	for _, name := range []string{"shop", "blog"} {
		_, err := b.Client().Create(ctx, routes, meta.NewObject(map[string]any{
			"metadata": map[string]any{"namespace": "default", "name": name},
			"spec":     map[string]any{"hosts": []any{name + ".example", "www.example"}},
		}))
		fmt.Println(err)
	}
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// <nil>
	// Route.example.com "blog" is invalid: spec.hosts[1]: Duplicate value: "www.example"
	// <nil>
}
