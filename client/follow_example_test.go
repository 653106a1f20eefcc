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

// A watch begins with what is there, and goes on by itself when it is cut off.
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
			var event client.Event[Lamp] = e
			switch event.Type {
			case client.Synced: // that was all; now something happens
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

// A cache is read without asking the server.
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

// A controller that lights lamps, in a program that leads alone.
func ExampleController() {
	serve(func(ctx context.Context, s *server.Server) error {
		conn := s.Conn(auth.User{Name: "lighter"})
		conn.Manager = "lighter"
		lamps := client.Of[Lamp](conn, registry.Of(lamp))
		cache := lamps.Cache()
		lit := make(chan string, 1)
		controller := client.Controller{
			Name:    "lighter",
			Sources: []client.Source{client.Each(cache)},
			Reconcile: func(ctx context.Context, key meta.Key) (time.Duration, error) {
				l, ok := cache.Get(key)
				if !ok || l.Spec.Lit {
					return 0, nil
				}
				_, err := lamps.In(key.Namespace).Modify(ctx, key.Name, func(l *Lamp) error {
					l.Spec.Lit = true
					return nil
				})
				if err == nil {
					lit <- key.Name
				}
				return 0, err // an error brings the key back after a pause
			},
		}
		ctx, end := context.WithCancel(ctx)
		defer end()
		ran := make(chan error, 1)
		go func() { ran <- client.Run(ctx, cache, controller) }()
		if _, err := lamps.Create(ctx, newLamp("desk", 40)); err != nil {
			return err
		}
		fmt.Println("lit:", <-lit)
		end()
		return <-ran
	})
	// Output: lit: desk
}

// What a lamp owns is looked after together with it; other objects are mapped to lamps by
// whatever they say.
func ExampleSource() {
	conn := client.Conn{URL: "https://127.0.0.1:1"}
	lamps := client.Of[Lamp](conn, registry.Of(lamp))
	bulbs := lamps.WithLabels("part=bulb").Cache()
	var sources []client.Source = []client.Source{
		client.Each(lamps.Cache()),
		client.Owned(bulbs, lamps),
		client.Mapped(bulbs, func(key meta.Key, bulb *Lamp) []meta.Key {
			return []meta.Key{{Namespace: key.Namespace, Name: bulb.Labels["lamp"]}}
		}),
	}
	fmt.Println(len(sources))
	// Output: 3
}

// Parts that work side by side end together.
func ExampleRun() {
	lamps := client.Of[Lamp](client.Conn{URL: "https://127.0.0.1:1"}, registry.Of(lamp))
	parts := []client.Runner{lamps.Cache(), client.Controller{Name: "unfinished"}}
	fmt.Println(client.Run(context.Background(), parts...))
	// Output: controller unfinished has no Reconcile
}

// Of several programs one leads, and knows when it does not any more.
func ExampleElection() {
	e := client.Election{Conn: client.Conn{URL: "https://127.0.0.1:1"}, Namespace: "kube-system", Name: "lighter"}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody answers there
	err := e.Run(ctx, func(ctx context.Context) error {
		return nil // client.Run(ctx, cache, controller)
	})
	fmt.Println(err, errors.Is(err, client.ErrLost))
	// Output: <nil> false
}
