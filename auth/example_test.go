package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"orch.io/controlplane/auth"
)

// A custom authenticator. If it returns no user and no error, the next authenticator decides; an
// error refuses the request.
func ExampleAuthenticator() {
	var badge auth.Authenticator = auth.AuthenticatorFunc(func(r *http.Request) (*auth.User, error) {
		switch r.Header.Get("Badge") {
		case "":
			return nil, nil
		case "7":
			return &auth.User{Name: "bond", Groups: []string{"agents"}}, nil
		}
		return nil, auth.BadToken("no such badge")
	})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Badge", "7")
	u, err := badge.Authenticate(r)
	fmt.Println(u.Name, u.InGroup("agents"), err)
	// Output: bond true <nil>
}

// A custom authorizer, combined with a group that has all rights.
func ExampleAuthorizer() {
	readers := auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
		if a.Verb == "get" || a.Verb == "list" || a.Verb == "watch" {
			return auth.Allow, "everybody reads", nil
		}
		return auth.NoOpinion, "", nil
	})
	decide := auth.Chain(auth.Superuser("admins"), readers)
	for _, a := range []auth.Attributes{
		{User: &auth.User{Name: "ann", Groups: []string{"admins"}}, Verb: "delete", Resource: "lamps"},
		{User: &auth.User{Name: "bob"}, Verb: "list", Resource: "lamps"},
		{User: &auth.User{Name: "bob"}, Verb: "delete", Resource: "lamps"},
	} {
		d, _, _ := decide.Authorize(context.Background(), a)
		fmt.Println(a.User.Name, a.Verb, d == auth.Allow)
	}
	// Output:
	// ann delete true
	// bob list true
	// bob delete false
}
