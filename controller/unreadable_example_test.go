package controller_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/controller/fake"
)

// Something that removes what a damaged store cannot give back any more, and works on
// with the rest.
func ExampleUnreadableError() {
	ctx := context.Background()
	pods := meta.GroupResource{Resource: "pods"}
	var client fake.Client
	client.Put("pods", map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default", "uid": "1"}})
	client.Fail(&controller.UnreadableError{Resource: pods, Keys: []meta.Key{{Namespace: "default", Name: "a"}}})

	list, err := client.List(ctx, pods, "")
	var damaged *controller.UnreadableError
	if errors.As(err, &damaged) {
		for _, key := range damaged.Keys {
			fmt.Println(key, client.Delete(ctx, damaged.Resource, key, controller.DeleteOptions{}))
		}
	}
	fmt.Println(len(list))
	// Output:
	// default/a <nil>
	// 0
}
