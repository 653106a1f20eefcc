package client_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
)

// damaged returns the Client of a server whose store holds an object that cannot be decoded.
type damaged struct {
	client.Client
	key meta.Key
}

func (c damaged) List(_ context.Context, r meta.GroupResource, _ string) ([]*meta.Object, error) {
	return nil, &client.UnreadableError{Resource: r, Keys: []meta.Key{c.key}}
}

func (c damaged) Delete(_ context.Context, _ meta.GroupResource, key meta.Key, _ registry.DeleteOptions) error {
	fmt.Println("deleted:", key)
	return nil
}

// The program deletes the objects that cannot be decoded.
func ExampleUnreadableError() {
	ctx := context.Background()
	c := damaged{key: meta.Key{Namespace: "default", Name: "a"}}

	_, err := c.List(ctx, meta.GroupResource{Resource: "pods"}, "")
	var unreadable *client.UnreadableError
	if errors.As(err, &unreadable) {
		for _, key := range unreadable.Keys {
			fmt.Println(c.Delete(ctx, unreadable.Resource, key, registry.DeleteOptions{}))
		}
	}
	// Output:
	// deleted: default/a
	// <nil>
}
