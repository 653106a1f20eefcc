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

// A watch begins with the existing objects, and resumes by itself if the connection is lost.
func ExampleObjects_Watch() {
	serve(func(ctx context.Context, s *server.Server) error {
		lamps := client.Of[Lamp](s.Conn(auth.User{Name: "electrician"}), registry.Of(lamp)).In("default")
		if _, err := lamps.Create(ctx, newLamp("desk", 40)); err != nil {
			return err
		}
		for e, err := range lamps.Watch(ctx, "") {
			if err != nil {
				return err
			}
			var event client.WatchEvent[Lamp] = e
			switch event.Type {
			case client.Synced: // all existing objects were reported
				if err := lamps.Delete(ctx, "desk", registry.DeleteOptions{}); err != nil {
					return err
				}
			case client.Deleted:
				fmt.Println(event.Type, event.Key)
				return nil
			case client.Added, client.Modified:
				fmt.Println(event.Type, event.Key, event.Object.Spec.Watts)
			}
		}
		return nil
	})
	// Output:
	// ADDED default/desk 40
	// DELETED default/desk
}

// A cache is read without requests to the server.
func ExampleCache() {
	serve(func(ctx context.Context, s *server.Server) error {
		lamps := client.Of[Lamp](s.Conn(auth.User{Name: "electrician"}), registry.Of(lamp))
		var cache *client.Cache[Lamp] = lamps.Cache()
		ctx, end := context.WithCancel(ctx)
		defer end()
		ran := make(chan error, 1)
		go func() { ran <- cache.Run(ctx) }()

		desk, err := lamps.Create(ctx, newLamp("desk", 40))
		if err != nil {
			return err
		}
		if err := cache.WaitFor(ctx, desk.ResourceVersion); err != nil {
			return err
		}
		for key, l := range cache.In("default") {
			fmt.Println(key, l.Spec.Watts)
		}
		end()
		return <-ran
	})
	// Output: default/desk 40
}

// A controller outside of the server turns on the lamps of one namespace. In Reconcile, the
// typed objects work as well as the Client.
func ExampleRun() {
	serve(func(ctx context.Context, s *server.Server) error {
		conn := s.Conn(auth.User{Name: "lighter"})
		conn.Manager = "lighter"
		lamps := client.Of[Lamp](conn, registry.Of(lamp)).In("default")
		lit := make(chan string, 1)
		c, err := client.New(lamps)
		if err != nil {
			return err
		}
		ctx, end := context.WithCancel(ctx)
		defer end()
		ran := make(chan error, 1)
		go func() {
			ran <- client.Run(ctx, c, client.RunOptions{}, client.Controller{
				Name: "lighter",
				MapEvent: func(e client.Event) []string {
					if e.Object == nil || e.Object.Bool("spec", "lit") {
						return nil
					}
					return []string{e.Key.Name}
				},
				Reconcile: func(ctx context.Context, _ client.Client, name string) (time.Duration, error) {
					_, err := lamps.Modify(ctx, name, func(l *Lamp) error {
						l.Spec.Lit = true
						return nil
					})
					if err == nil {
						lit <- name
					}
					return 0, err
				},
			})
		}()
		if _, err := lamps.Create(ctx, newLamp("desk", 40)); err != nil {
			return err
		}
		fmt.Println("lit:", <-lit)
		end()
		return <-ran
	})
	// Output: lit: desk
}

// A controller of lamps is also notified of the config maps that lamps own.
func ExampleEvent_Owners() {
	config := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "light", "namespace": "default"}})
	config.Set([]any{map[string]any{"apiVersion": "example.com/v1", "kind": "Lamp", "name": "desk", "uid": "1"}}, "metadata", "ownerReferences")
	e := client.Event{Key: meta.Key{Namespace: "default", Name: "light"}, Object: config}
	fmt.Println(e.Owners(meta.GroupKind{Group: "example.com", Kind: "Lamp"}, registry.Namespaced))
	// Output: [default/desk]
}

// New returns a Client for several kinds, without their structs.
func ExampleNew() {
	conn := client.Conn{URL: "https://127.0.0.1:1"}
	var scope client.Scope = client.Of[meta.Object](conn, registry.Of(lamp)).WithLabels("room=hall")
	c, err := client.New(scope)
	fmt.Println(c.Types()[0].GroupResource(), err)
	// Output: lamps.example.com <nil>
}

// One of several programs leads, and learns when it no longer does.
func ExampleElection() {
	e := client.Election{Conn: client.Conn{URL: "https://127.0.0.1:1"}, Namespace: "kube-system", Name: "lighter"}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no server is there
	err := e.Run(ctx, func(ctx context.Context) error {
		return nil // client.Run(ctx, c, client.RunOptions{}, controller)
	})
	fmt.Println(err, errors.Is(err, client.ErrLost))
	// Output: <nil> false
}
