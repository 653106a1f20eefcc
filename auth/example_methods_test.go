package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"orch.io/controlplane/auth"
)

// robots maps tokens to service accounts.
type robots map[string]string

func (r robots) AuthenticateToken(_ context.Context, token string, _ []string) (*auth.User, []string, error) {
	name, ok := r[token]
	if !ok {
		return nil, nil, auth.BadToken("no robot has it")
	}
	return &auth.User{Name: auth.ServiceAccountUser("default", name), Groups: auth.ServiceAccountGroups("default")}, nil, nil
}

func (r robots) Authenticate(req *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(r, req)
}

// A custom authenticator for bearer tokens. The reason of a refusal is returned by
// TokenReviews, but not to the caller with the token.
func ExampleTokenAuthenticator() {
	var method auth.Authenticator = robots{"s3cret": "r2"}
	for _, header := range []string{"Bearer s3cret", "Bearer guessed", "Basic abc"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", header)
		_, mine := auth.BearerToken(r)
		u, err := method.Authenticate(r)
		var bad *auth.TokenError
		switch {
		case errors.As(err, &bad):
			fmt.Println("refused:", bad.Reason)
		case u == nil:
			fmt.Println("for others:", !mine)
		default:
			namespace, name, ok := auth.SplitServiceAccount(u.Name)
			fmt.Println(namespace, name, ok, u.Groups)
		}
	}
	// Output:
	// default r2 true [system:serviceaccounts system:serviceaccounts:default]
	// refused: no robot has it
	// for others: true
}

// guests is an Authorizer that allows reading lamps.
type guests struct{}

func (guests) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if a.Verb == "get" && a.Resource == "lamps" || a.Path == "/welcome" {
		return auth.Allow, "guests look around", nil
	}
	return auth.NoOpinion, "", nil
}

func (guests) RulesFor(context.Context, *auth.User, string) auth.Rules {
	return auth.Rules{
		Resource:    []auth.ResourceRule{{Verbs: []string{"get"}, Groups: []string{"example.com"}, Resources: []string{"lamps"}}},
		NonResource: []auth.NonResourceRule{{Verbs: []string{"get"}, Paths: []string{"/welcome"}}},
	}
}

// If an authorizer can list its rules, "kubectl auth can-i --list" works.
func ExampleRuleLister() {
	decide := auth.Chain(auth.Superuser("admins"), guests{})
	if lister, ok := decide.(auth.RuleLister); ok {
		rules := lister.RulesFor(context.Background(), &auth.User{Name: "ann"}, "default")
		fmt.Println(rules.Resource[0].Resources, rules.NonResource[0].Paths)
	}
	// Output: [lamps] [/welcome]
}

// counter is an Auditor that counts failed requests.
type counter struct{ failed int }

func (c *counter) Begin(*http.Request, string, auth.Attributes) auth.Trail { return trail{count: c} }

// trail implements only Complete; this example does not call the methods of the embedded
// nil Trail.
type trail struct {
	auth.Trail
	count *counter
}

func (t trail) Complete(o auth.Outcome) {
	if o.Code >= 400 {
		t.count.failed++
	}
}

func ExampleAuditor() {
	c := &counter{}
	var auditor auth.Auditor = c // Audit of a server.Builder
	for _, code := range []int{200, 404} {
		auditor.Begin(httptest.NewRequest("GET", "/", nil), "id", auth.Attributes{Verb: "get"}).Complete(auth.Outcome{Code: code})
	}
	fmt.Println(c.failed)
	// Output: 1
}
