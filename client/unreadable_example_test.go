package client_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

// The program deletes the objects that cannot be decoded.
func ExampleUnreadableError() {
	ctx := context.Background()
	pods := meta.GroupResource{Resource: "pods"}
	var c testclient.Client
	c.Put("pods", map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default", "uid": "1"}})
	c.Fail(&client.UnreadableError{Resource: pods, Keys: []meta.Key{{Namespace: "default", Name: "a"}}})

	list, err := c.List(ctx, pods, "")
	var damaged *client.UnreadableError
	if errors.As(err, &damaged) {
		for _, key := range damaged.Keys {
			fmt.Println(key, c.Delete(ctx, damaged.Resource, key, registry.DeleteOptions{}))
		}
	}
	fmt.Println(len(list))
	// Output:
	// default/a <nil>
	// 0
}
