package server_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/storage/memstore"
)

// A store can only be served with the names profile with which it was filled.
func ExampleNamesError() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	same := store.Fork()
	first := &server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes, Storage: store}
	s, err := first.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	copied := store.Fork()
	fmt.Println(s.Shutdown(ctx), same.Close())

	second := &server.Builder{Authorizer: auth.AllowAll, Storage: copied}
	_, err = second.Build(ctx)
	var other *server.NamesError
	if errors.As(err, &other) {
		fmt.Println("filled as", other.Store+", served as", other.Server)
	}
	// Output:
	// <nil> <nil>
	// filled as kubernetes, served as orch
}

// A server that reports its own version and never queues requests for it.
func ExampleServing() {
	ctx := context.Background()
	flows := flowcontrol.Default(names.Orch)
	flows.Schemas = append(flows.Schemas, flowcontrol.FlowSchema{
		Name: "version", Precedence: 10, Level: "exempt", Rules: []flowcontrol.Rule{{
			Subjects: []flowcontrol.Subject{{Group: auth.Authenticated}, {Group: auth.Unauthenticated}},
			Paths:    []flowcontrol.PathRule{{Verbs: []string{"get"}, Paths: []string{"/version"}}},
		}},
	})
	b := &server.Builder{Authorizer: auth.AllowAll, Serving: server.Serving{
		FlowControl: &flows, Version: "v1.2.3", GzipFrom: -1, LivezGrace: time.Minute,
	}}
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Shutdown(ctx))
	// Output: <nil>
}
