package access_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/abac"
	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/serving"
)

// The operator of the server keeps users, policies and keys in files.
func ExampleConfig() {
	dir, err := os.MkdirTemp("", "access")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	_, key, err := serviceaccount.NewKeyPEM()
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, text := range map[string]string{
		"keys.pem":   string(key),
		"tokens.csv": "s3cret,alice,1\n",
		"abac.jsonl": `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"secrets","readonly":true}}`,
		"audit.yaml": "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n",
	} {
		if err := serving.WritePrivate(filepath.Join(dir, name), []byte(text)); err != nil {
			fmt.Println(err)
			return
		}
	}
	s, err := fromFiles(context.Background(), dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, method := range []string{"GET", "DELETE"} {
		req, _ := http.NewRequest(method, "http://server/api/v1/namespaces/default/secrets", nil)
		req.Header.Set("Authorization", "Bearer s3cret")
		res, err := s.Transport().RoundTrip(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
		fmt.Println(method, res.StatusCode)
	}
	fmt.Println(s.Shutdown(context.Background()))
	// Output:
	// GET 200
	// DELETE 403
	// <nil>
}

func fromFiles(ctx context.Context, dir string) (*server.Server, error) {
	b := &server.Builder{Names: names.Kubernetes}
	b.Register(builtin.Kinds()...)
	keys, err := serviceaccount.LoadKeys(filepath.Join(dir, "keys.pem"))
	if err != nil {
		return nil, err
	}
	tokens, err := serviceaccount.New(serviceaccount.Config{Keys: keys, Client: b.Client(), Names: b.Names})
	if err != nil {
		return nil, err
	}
	users, err := tokenfile.Load(filepath.Join(dir, "tokens.csv"))
	if err != nil {
		return nil, err
	}
	policies, err := abac.Load(filepath.Join(dir, "abac.jsonl"), b.Names)
	if err != nil {
		return nil, err
	}
	recorded, err := audit.LoadPolicy(filepath.Join(dir, "audit.yaml"), b.Names)
	if err != nil {
		return nil, err
	}
	file, err := audit.OpenFile(filepath.Join(dir, "audit.log"), audit.FileOptions{MaxSize: 100 << 20, MaxBackups: 3})
	if err != nil {
		return nil, err
	}
	if b.Audit, err = audit.Open(audit.Config{Policy: recorded, Sinks: []audit.Sink{file}, Names: b.Names}); err != nil {
		return nil, err
	}
	ca, err := serving.LoadAuthority(dir)
	if err != nil {
		return nil, err
	}
	clients, err := clientcert.ParseBundle(ca.PEM())
	if err != nil {
		return nil, err
	}
	b.RunControllers = []string{"*", "-csrcleaner"}
	err = access.Setup(b, access.Config{
		ClientCAs: clients, RootCA: ca.PEM(), Tokens: tokens, Authenticators: []auth.Authenticator{users},
		Authorizers: func(own access.Builtin) []auth.Authorizer { return []auth.Authorizer{own.Node, own.RBAC, policies} },
		Publish: access.Publish{
			Address: netip.MustParseAddr("10.0.0.1"), Port: 6443,
			Authentication: access.Authentication{ClientCAs: ca.PEM()},
		},
	})
	if err != nil {
		return nil, err
	}
	return b.Build(ctx)
}
