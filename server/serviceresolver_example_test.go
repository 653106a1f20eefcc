package server_test

import (
	"context"
	"fmt"
	"net/http"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
)

// A webhook inside the program answers without a socket. Other services are resolved by their
// Service objects.
func ExampleServiceResolver() {
	webhook := server.Service{Namespace: "default", Name: "policy", Port: 443}
	resolve := server.ServiceResolver(func(_ context.Context, s server.Service) (server.Endpoint, error) {
		if s == webhook {
			return server.Endpoint{Handler: http.NotFoundHandler()}, nil
		}
		return server.Endpoint{}, nil
	})
	b := &server.Builder{Authorizer: auth.AllowAll, ServiceResolver: resolve}
	e, err := b.ServiceResolver(context.Background(), webhook)
	fmt.Println(webhook.Address(), e.Handler != nil, err)
	// Output: policy.default.svc:443 true <nil>
}
