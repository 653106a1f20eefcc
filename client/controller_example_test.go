package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

type Beacon struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Lit bool `json:"lit"`
	} `json:"spec"`
	Status struct {
		Burnt bool `json:"burnt,omitempty"`
	} `json:"status,omitzero"`
}

var (
	beacon = registry.Definition[Beacon]{
		Group: "example.com", Version: "v1", Scope: registry.Cluster, Status: true, ShortNames: []string{"bc"},
	}
	beacons = meta.GroupResource{Group: "example.com", Resource: "beacons"}
)

func newBeacon(name string, lit bool) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"lit": lit}})
}

// A program reads and writes the objects of its server without HTTP.
func ExampleClient() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(registry.Of(beacon))
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)
	var objects client.Client = s.Objects()
	feed := objects.Feed(beacons)
	defer feed.Close()

	_, _ = objects.Create(ctx, beacons, newBeacon("desk", false))
	changes, _ := feed.Changes() // at first, the current objects
	for e := range changes {
		fmt.Println(e.Key, e.Old == nil)
	}
	_, err = objects.Update(ctx, beacons, meta.Key{Name: "desk"}, "status", func(o *meta.Object) error {
		o.Set(true, "status", "burnt")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	changes, _ = feed.Changes()
	for e := range changes {
		fmt.Println(e.Old.Bool("status", "burnt"), e.Object.Bool("status", "burnt"))
	}
	err = objects.Delete(ctx, beacons, meta.Key{Name: "desk"}, registry.DeleteOptions{Version: "1"})
	fmt.Println(meta.IsConflict(err))
	// Output:
	// desk true
	// false true
	// true
}

// The controller turns off every beacon that is lit.
func ExampleController() {
	off := make(chan string)
	saver := client.Controller{
		Name:  "saver",
		Types: []meta.GroupResource{beacons},
		MapEvent: func(e client.Event) []string {
			if e.Object == nil || !e.Object.Bool("spec", "lit") {
				return nil
			}
			return []string{e.Key.Name}
		},
		Reconcile: func(ctx context.Context, c client.Client, name string) (time.Duration, error) {
			_, err := c.Update(ctx, beacons, meta.Key{Name: name}, "", func(o *meta.Object) error {
				o.Set(false, "spec", "lit")
				return nil
			})
			off <- name
			return 0, err // after an error, the key is reconciled again
		},
	}
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll, Controllers: []client.Controller{saver}}
	b.Register(registry.Of(beacon))
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	_, _ = s.Objects().Create(ctx, beacons, newBeacon("desk", true))
	fmt.Println("off:", <-off)
	fmt.Println(errors.Join(s.Shutdown(ctx), <-ran))
	// Output:
	// off: desk
	// <nil>
}
