package serviceaccount_test

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

// A server with service accounts but without package access: tokens signed with a
// stored key, a default account in each namespace, and a ConfigMap with the
// server's CA certificates.
func ExampleTokens_Subresource() {
	ctx := context.Background()
	_, stored, err := serviceaccount.NewKeyPEM()
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := serviceaccount.ParseKeys(stored)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	b.Register(builtin.Kinds()...)
	tokens, err := serviceaccount.New(serviceaccount.Config{Keys: keys, Client: b.Client(), Names: b.Names})
	if err != nil {
		fmt.Println(err)
		return
	}
	sub, err := tokens.Subresource()
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts := b.Kind("", "ServiceAccount")
	accounts.Subresources = append(accounts.Subresources, sub)
	b.Authenticators = []auth.Authenticator{tokens}
	b.Controllers = []client.Controller{
		serviceaccount.DefaultAccounts(), serviceaccount.RootCA(b.Names, []byte("PEM")), tokens.Secrets([]byte("PEM")),
	}
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub.Name, tokens.Audiences())
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// token [https://kubernetes.default.svc.cluster.local]
	// <nil>
}
