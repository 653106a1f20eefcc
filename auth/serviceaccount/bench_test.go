package serviceaccount_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
)

// BenchmarkAuthenticateTokenServed looks up the account in a server. The token's
// signature is cached.
func BenchmarkAuthenticateTokenServed(b *testing.B) {
	s := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	key, err := serviceaccount.GenerateKey()
	require.NoError(b, err)
	tokens, err := serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: s.Client(), Names: s.Names})
	require.NoError(b, err)
	s.Register(core.Kinds()...)
	built, err := s.Build(b.Context())
	require.NoError(b, err)
	defer func() { require.NoError(b, built.Shutdown(b.Context())) }()
	account := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "robot", "namespace": "default"}})
	_, err = s.Client().Create(b.Context(), meta.GroupResource{Resource: "serviceaccounts"}, account)
	require.NoError(b, err)
	o, err := tokens.TokenRequest(b.Context(), &registry.Call{Key: meta.Key{Namespace: "default", Name: "robot"}, Names: s.Names,
		Object: meta.NewObject(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{}})})
	require.NoError(b, err)
	token := o.String("status", "token")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := tokens.AuthenticateToken(b.Context(), token, nil); err != nil {
			b.Fatal(err)
		}
	}
}
