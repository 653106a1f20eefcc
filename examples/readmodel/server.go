package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/watch"
)

// Lamp is the kind of the API server.
type Lamp struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Room  string `json:"room"`
		State string `json:"state" schema:"enum=on|off"`
	} `json:"spec"`
}

var lampKind = registry.Of(registry.Definition[Lamp]{Group: "example.com", Version: "v1", Scope: registry.Cluster})

func main() {
	store := memstore.New(memstore.Options{})
	err := run(context.Background(), store, func(s *server.Server, rooms http.Handler) error {
		mux := http.NewServeMux()
		mux.Handle("/rooms/", rooms)
		mux.Handle("/", s)
		return http.ListenAndServe("127.0.0.1:8080", mux)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "readmodel:", err)
		os.Exit(1)
	}
}

// run calls serve with an API server and the read model on its store.
func run(ctx context.Context, store storage.Backend, serve func(*server.Server, http.Handler) error) error {
	b := &server.Builder{Authorizer: auth.AllowAll, Storage: store}
	b.Register(lampKind)
	s, err := b.Build(ctx)
	if err != nil {
		return err
	}
	caches, err := watch.Open(ctx, store, watch.Options[*lamp]{Entry: decode})
	if err != nil {
		return errors.Join(err, s.Shutdown(ctx))
	}
	err = serve(s, rooms(caches))
	return errors.Join(err, caches.Close(), s.Shutdown(ctx))
}
