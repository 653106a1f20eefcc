// Command quickstart runs a server with a custom kind and a client of it in one process. The client
// creates a Widget, makes it red, tries an invalid color and deletes it; a watch prints the changes.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// Widget is the kind: a plain struct, without generated code.
type Widget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Color string `json:"color,omitempty" schema:"default=green,enum=green|red"`
		Size  int    `json:"size,omitempty" schema:"min=1"`
	} `json:"spec"`
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	widget := registry.Of(registry.Definition[Widget]{Group: "example.com", Version: "v1", Scope: registry.Cluster})
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	b.Register(widget)
	s, err := b.Build(ctx) // an http.Handler; mount it on a listener to serve other processes
	if err != nil {
		return err
	}
	widgets := client.Of[Widget](s.Conn(auth.User{Name: "visitor"}), widget)
	return errors.Join(tour(ctx, widgets, out), s.Shutdown(ctx))
}

// tour also works with a remote server, with a client.Conn for its URL.
func tour(ctx context.Context, widgets *client.Objects[Widget], out io.Writer) error {
	for e, err := range widgets.Watch(ctx, "") {
		if err != nil {
			return err
		}
		if e.Type == client.Synced { // the initial objects are complete; now changes follow
			if err := change(ctx, widgets, out); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out, "%s %s: %s, size %d\n", e.Type, e.Object.Name, e.Object.Spec.Color, e.Object.Spec.Size)
		if e.Type == client.Deleted {
			break
		}
	}
	return nil
}

func change(ctx context.Context, widgets *client.Objects[Widget], out io.Writer) error {
	cog := &Widget{ObjectMeta: meta.ObjectMeta{Name: "cog"}}
	cog.Spec.Size = 3
	if _, err := widgets.Create(ctx, cog); err != nil {
		return err
	}
	for _, color := range []string{"red", "blue"} {
		if _, err := widgets.Modify(ctx, "cog", func(w *Widget) error { w.Spec.Color = color; return nil }); err != nil {
			fmt.Fprintln(out, "refused:", err)
		}
	}
	return widgets.Delete(ctx, "cog", registry.DeleteOptions{})
}
