package fake_test

import (
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/controller/fake"
)

// Something that follows objects is tested without a server.
func Example() {
	var client fake.Client
	count := controller.NewIndex(&client, []meta.GroupResource{{Resource: "pods"}},
		func() map[meta.Key]bool { return map[meta.Key]bool{} },
		func(pods map[meta.Key]bool, e controller.Event) { pods[e.Key] = e.Object != nil })
	defer count.Close()
	show := func() { count.Read(func(pods map[meta.Key]bool) { fmt.Println(len(pods), "pods") }) }
	show()
	client.Put("pods", map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default"}})
	show()
	// Output:
	// 0 pods
	// 1 pods
}
