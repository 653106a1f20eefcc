package client_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// serve builds a server with lamps, passes it to use, and shuts it down.
func serve(use func(ctx context.Context, s *server.Server) error) {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(registry.Of(lamp))
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := errors.Join(use(ctx, s), s.Shutdown(ctx)); err != nil {
		fmt.Println(err)
	}
}

// A program accesses its own kind at the server that it runs, as a user that is subject to access
// control and audit.
func ExampleOf() {
	serve(func(ctx context.Context, s *server.Server) error {
		conn := s.Conn(auth.User{Name: "electrician"})
		conn.Manager = "wiring"
		var lamps *client.Objects[Lamp] = client.Of[Lamp](conn, registry.Of(lamp)).In("default")

		desk, err := lamps.Create(ctx, newLamp("desk", 40))
		if err != nil {
			return err
		}
		fmt.Println(desk.Spec.Color, "by", desk.ManagedFields[0].Manager)
		_, err = lamps.Modify(ctx, "desk", func(l *Lamp) error {
			l.Spec.Color = "blue"
			return nil
		})
		fmt.Println(err)
		return lamps.Delete(ctx, "desk", registry.DeleteOptions{UID: desk.UID})
	})
	// Output:
	// white by wiring
	// Lamp.example.com "desk" is invalid: spec.color: Unsupported value: "blue": supported values: "white", "red", "green"
}

// A Conn to another server needs its address and a transport with credentials, such as that of a
// kubeconfig (kubeconfig.Load).
func ExampleConn() {
	conn := client.Conn{URL: "https://127.0.0.1:1", Token: "secret", Manager: "wiring"}
	_, err := client.Of[Lamp](conn, registry.Of(lamp)).In("default").Get(context.Background(), "desk")
	fmt.Println(err != nil, meta.ReasonOf(err) == "")
	// Output: true true
}

func ExampleObjects_List() {
	serve(func(ctx context.Context, s *server.Server) error {
		lamps := client.Of[Lamp](s.Conn(auth.User{Name: "electrician"}), registry.Of(lamp))
		for _, name := range []string{"desk", "hall", "yard"} {
			if _, err := lamps.Create(ctx, newLamp(name, 40)); err != nil {
				return err
			}
		}
		var page *client.Page[Lamp]
		page, err := lamps.List(ctx, client.ListOptions{Limit: 2})
		if err != nil {
			return err
		}
		fmt.Println(len(page.Items), "and", *page.Remaining, "more")
		for l, err := range lamps.WithFields("spec.color=white").All(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(l.Name)
		}
		return lamps.In("default").DeleteAll(ctx, registry.DeleteOptions{})
	})
	// Output:
	// 2 and 1 more
	// desk
	// hall
	// yard
}

// A patch has only the changes, in one of three formats.
func ExampleObjects_Patch() {
	serve(func(ctx context.Context, s *server.Server) error {
		lamps := client.Of[Lamp](s.Conn(auth.User{Name: "electrician"}), registry.Of(lamp)).In("default")
		if _, err := lamps.Create(ctx, newLamp("desk", 40)); err != nil {
			return err
		}
		for _, p := range []client.Patch{
			client.MergePatch(map[string]any{"spec": map[string]any{"watts": 60}}),
			client.StrategicPatch(map[string]any{"spec": map[string]any{"lit": true}}),
			client.JSONPatch([]any{map[string]any{"op": "replace", "path": "/spec/color", "value": "red"}}),
		} {
			if _, err := lamps.Patch(ctx, "desk", p); err != nil {
				return err
			}
		}
		desk, err := lamps.Get(ctx, "desk")
		fmt.Println(desk.Spec)
		return err
	})
	// Output: {red 60 true}
}

// Apply makes its manager the owner of the fields. A field that another manager owns is a conflict.
func ExampleObjects_Apply() {
	serve(func(ctx context.Context, s *server.Server) error {
		conn := s.Conn(auth.User{Name: "electrician"})
		conn.Manager = "wiring"
		wiring := client.Of[Lamp](conn, registry.Of(lamp)).In("default")
		conn.Manager = "decoration"
		decoration := client.Of[Lamp](conn, registry.Of(lamp)).In("default")

		if _, err := wiring.Apply(ctx, newLamp("desk", 40), client.ApplyOptions{}); err != nil {
			return err
		}
		bright := map[string]any{"metadata": map[string]any{"name": "desk"}, "spec": map[string]any{"watts": 100}}
		_, err := decoration.Apply(ctx, bright, client.ApplyOptions{})
		fmt.Println(err)
		desk, err := decoration.Apply(ctx, bright, client.ApplyOptions{Force: true})
		if err == nil {
			fmt.Println(desk.Spec.Watts)
		}
		return err
	})
	// Output:
	// Apply failed with 1 conflict: conflict with "wiring": .spec.watts
	// 100
}
