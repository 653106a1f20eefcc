package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"orch.io/controlplane/auth"
)

// A way to authenticate of one's own: nil, nil leaves the caller to others, an
// error refuses it.
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

// A rule of one's own beside a group that may do anything.
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
