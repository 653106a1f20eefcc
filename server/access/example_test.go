package access_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
)

func ExampleSetup() {
	ctx := context.Background()
	users, err := tokenfile.Parse(strings.NewReader("s3cret,alice,1,system:masters\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	b := &server.Builder{Names: names.Kubernetes}
	b.Register(builtin.Kinds()...)
	if err := access.Setup(b, access.Config{Authenticators: []auth.Authenticator{users}}); err != nil {
		fmt.Println(err)
		return
	}
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)
	for _, header := range []string{"", "Bearer guessed", "Bearer s3cret"} {
		req, _ := http.NewRequest("GET", "http://server/api/v1/namespaces/default/secrets", nil)
		req.Header.Set("Authorization", header)
		res, err := s.Transport().RoundTrip(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
		fmt.Println(res.StatusCode)
	}
	// Output:
	// 403
	// 401
	// 200
}
