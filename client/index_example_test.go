package client_test

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// An index counts the beacons of a server and is current whenever it is read.
func ExampleNewIndex() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(registry.Of(beacon))
	var names *client.Index[map[string]bool] = client.NewIndex(b.Client(), []meta.GroupResource{beacons},
		func() map[string]bool { return map[string]bool{} },
		func(names map[string]bool, e client.Event) {
			if names[e.Key.Name] = true; e.Object == nil {
				delete(names, e.Key.Name)
			}
		})
	defer names.Close()
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)
	_, _ = s.Objects().Create(ctx, beacons, newBeacon("harbor", true))
	names.Read(func(names map[string]bool) { fmt.Println(names) })
	// Output: map[harbor:true]
}
