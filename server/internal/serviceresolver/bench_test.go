package serviceresolver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/serviceresolver"
)

// BenchmarkResolve resolves a service among many EndpointSlices.
func BenchmarkResolve(b *testing.B) {
	build := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	build.Register(builtin.Kinds()...)
	s, err := build.Build(b.Context())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Shutdown(context.Background())) })
	client := s.Objects()
	ctx := context.Background()
	put := func(group, plural string, tree map[string]any) {
		_, err := client.Create(ctx, meta.GroupResource{Group: group, Resource: plural}, meta.NewObject(tree))
		require.NoError(b, err)
	}
	port := []any{map[string]any{"port": int64(443), "name": "https"}}
	for i := range 1000 {
		put("discovery.k8s.io", "endpointslices", map[string]any{"addressType": "IPv4", "metadata": map[string]any{"namespace": "default", "name": fmt.Sprintf("x%d", i), "labels": map[string]any{"kubernetes.io/service-name": fmt.Sprintf("s%d", i)}},
			"ports": port, "endpoints": []any{map[string]any{"addresses": []any{"10.0.0.1"}}}})
	}
	put("", "services", map[string]any{"metadata": map[string]any{"namespace": "default", "name": "s7"}, "spec": map[string]any{"clusterIP": "None", "ports": port}})
	put("", "services", map[string]any{"metadata": map[string]any{"namespace": "default", "name": "ip"}, "spec": map[string]any{"ports": port}})
	find := serviceresolver.New(names.Kubernetes, client, nil).Resolve
	for _, name := range []string{"s7", "ip"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := find(ctx, services.Service{Namespace: "default", Name: name, Port: 443}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
