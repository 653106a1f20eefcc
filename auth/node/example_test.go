package node_test

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/node"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

// A node may read only the Secrets of the pods that are bound to it.
func ExampleNew() {
	ctx := context.Background()
	b := &server.Builder{Names: names.Kubernetes}
	b.Register(builtin.Kinds()...)
	nodes := node.New(b.Client(), b.Names)
	defer nodes.Close()
	b.Authorizer = nodes
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)

	pod := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": map[string]any{
		"nodeName":   "n1",
		"containers": []any{map[string]any{"name": "web", "image": "web:1", "envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "keys"}}}}},
	}})
	if _, err := b.Client().Create(ctx, meta.GroupResource{Resource: "pods"}, pod); err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"n1", "n2"} {
		agent := &auth.User{Name: node.UserPrefix + name, Groups: []string{node.Group}}
		decision, _, err := nodes.Authorize(ctx, auth.Attributes{User: agent, Verb: "get", Version: "v1", Resource: "secrets", Namespace: "default", Name: "keys"})
		fmt.Println(name, decision == auth.Allow, err)
	}
	// Output:
	// n1 true <nil>
	// n2 false <nil>
}

func ExampleName() {
	fmt.Println(node.Name(&auth.User{Name: "system:node:n1", Groups: []string{"system:nodes"}}))
	fmt.Println(node.Name(&auth.User{Name: "system:node:n1"}))
	// Output:
	// n1 true
	//  false
}
