package storagemigration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/builtin/storagemigration"
	"orch.io/controlplane/server"
)

// A caller has the objects of a resource stored anew, as with kubectl apply.
func ExampleKinds() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(builtin.Kinds()...)
	b.Register(storagemigration.Kinds()...)
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	<-s.Running()
	post := httptest.NewRequest(http.MethodPost, "/apis/storagemigration.orch.io/v1/storageversionmigrations",
		strings.NewReader(`{"metadata":{"name":"pods"},"spec":{"resource":{"group":"","resource":"pods"}}}`))
	post.Header.Set("Content-Type", "application/json")
	s.ServeHTTP(httptest.NewRecorder(), post)
	_ = s.Settle(ctx)

	m, err := s.Objects().Get(ctx, meta.GroupResource{Group: "storagemigration.orch.io", Resource: "storageversionmigrations"}, meta.Key{Name: "pods"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.HasCondition("Running"), m.HasCondition("Succeeded"), m.HasCondition("Failed"))
	cancel()
	fmt.Println(<-ran, s.Shutdown(context.Background()))
	// Output:
	// false true false
	// <nil> <nil>
}
