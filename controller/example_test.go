package controller_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

type Lamp struct {
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
	lamp = registry.Definition[Lamp]{
		Group: "example.com", Version: "v1", Scope: registry.Cluster, Status: true, ShortNames: []string{"lp"},
	}
	lamps = meta.GroupResource{Group: "example.com", Resource: "lamps"}
)

func newLamp(name string, lit bool) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"lit": lit}})
}

// The program that runs a server reads and writes its objects without HTTP.
func ExampleClient() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(registry.Of(lamp))
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)
	var objects controller.Client = s.Objects()
	feed := objects.Feed(lamps)
	defer feed.Close()

	_, _ = objects.Create(ctx, lamps, newLamp("desk", false))
	changes, _ := feed.Pull() // at first, what is there
	fmt.Println(changes[0].Key, changes[0].Old == nil)
	_, err = objects.Update(ctx, lamps, meta.Key{Name: "desk"}, "status", func(o *meta.Object) error {
		o.Set(true, "status", "burnt")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	changes, _ = feed.Pull()
	fmt.Println(changes[0].Old.Bool("status", "burnt"), changes[0].Object.Bool("status", "burnt"))
	err = objects.Delete(ctx, lamps, meta.Key{Name: "desk"}, controller.DeleteOptions{Version: "1"})
	fmt.Println(meta.IsConflict(err))
	// Output:
	// desk true
	// false true
	// true
}

// A controller that puts out every lamp that somebody lights.
func ExampleController() {
	off := make(chan string)
	saver := controller.Controller{
		Name:  "saver",
		Types: []meta.GroupResource{lamps},
		Observe: func(c controller.Event) []string {
			if c.Object == nil || !c.Object.Bool("spec", "lit") {
				return nil
			}
			return []string{c.Key.Name}
		},
		Reconcile: func(ctx context.Context, client controller.Client, name string) (time.Duration, error) {
			_, err := client.Update(ctx, lamps, meta.Key{Name: name}, "", func(o *meta.Object) error {
				o.Set(false, "spec", "lit")
				return nil
			})
			off <- name
			return 0, err // an error brings the key back after a pause
		},
	}
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll, Controllers: []controller.Controller{saver}}
	b.Register(registry.Of(lamp))
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	_, _ = s.Objects().Create(ctx, lamps, newLamp("desk", true))
	fmt.Println("off:", <-off)
	fmt.Println(errors.Join(s.Shutdown(ctx), <-ran))
	// Output:
	// off: desk
	// <nil>
}
