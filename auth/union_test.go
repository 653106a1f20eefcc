package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
)

func request(headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestBearerToken(t *testing.T) {
	for header, want := range map[string]string{
		"":                        "",
		"Bearer abc":              "abc",
		"bearer abc":              "abc",
		"BEARER abc":              "abc",
		"  Bearer abc  ":          "abc",
		"Bearer  abc":             "",
		"Bearer":                  "",
		"Bearer ":                 "",
		"abc":                     "",
		"Basic abc":               "",
		"Bearerabc":               "",
		"Bearer\tabc":             "",
		"Bearer abc def":          "abc",
		"Digest x, Bearer abc":    "",
		"Bearer abc.def-ghi_~+/=": "abc.def-ghi_~+/=",
	} {
		token, ok := auth.BearerToken(request("Authorization", header))
		assert.Equal(t, want, token, "%q", header)
		assert.Equal(t, want != "", ok, "%q", header)
	}
	_, ok := auth.BearerToken(request())
	assert.False(t, ok)
}

// known is a TokenAuthenticator with a single token.
type known struct {
	token string
	user  *auth.User
	err   error
}

func (k known) Authenticate(r *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(k, r)
}

func (k known) AuthenticateToken(_ context.Context, token string, audiences []string) (*auth.User, []string, error) {
	if token == k.token {
		return k.user, audiences, nil
	}
	return nil, nil, k.err
}

func TestUnion(t *testing.T) {
	boom := errors.New("boom")
	alice := known{"a", &auth.User{Name: "alice", Groups: []string{"devs"}}, nil}
	bob := known{"b", &auth.User{Name: "bob"}, nil}
	broken := known{"", nil, boom}
	cert := auth.AuthenticatorFunc(func(r *http.Request) (*auth.User, error) {
		if r.Header.Get("Cert") == "bad" {
			return nil, boom
		}
		return nil, nil
	})
	many := auth.Union(broken, alice, nil, bob, cert, auth.AnonymousAccess)
	for _, c := range []struct {
		name  string
		m     *auth.UnionAuthenticator
		r     *http.Request
		want  string
		fails bool
	}{
		{"first", many, request("Authorization", "Bearer a"), "alice", false},
		{"failure before does not hide", many, request("Authorization", "Bearer b"), "bob", false},
		{"failure after does not hide", auth.Union(alice, broken), request("Authorization", "Bearer a"), "alice", false},
		{"bad token", many, request("Authorization", "Bearer c"), "", true},
		{"bad token that nobody minds", auth.Union(alice, auth.AnonymousAccess), request("Authorization", "Bearer c"), "", true},
		{"bad token, no methods", auth.Union(auth.AnonymousAccess), request("Authorization", "Bearer c"), "", true},
		{"token too long", many, request("Authorization", "Bearer "+strings.Repeat("a", auth.MaxToken+1)), "", true},
		{"bad certificate", many, request("Cert", "bad"), "", true},
		{"bad certificate, good token", many, request("Cert", "bad", "Authorization", "Bearer a"), "alice", false},
		{"anonymous", many, request(), auth.Anonymous, false},
		{"other scheme is anonymous", many, request("Authorization", "Basic a"), auth.Anonymous, false},
		{"anonymous first in the list", auth.Union(auth.AnonymousAccess, alice), request("Authorization", "Bearer a"), "alice", false},
		{"anonymous off", auth.Union(alice), request(), "", false},
		{"nested", auth.Union(auth.Union(alice), bob), request("Authorization", "Bearer b"), "bob", false},
	} {
		u, err := c.m.Authenticate(c.r)
		assert.Equal(t, c.fails, err != nil, "%s: %v", c.name, err)
		if c.want == "" {
			assert.Nil(t, u, c.name)
			continue
		}
		require.NotNil(t, u, c.name)
		assert.Equal(t, c.want, u.Name, c.name)
		assert.Equal(t, c.want == auth.Anonymous, u.InGroup(auth.Unauthenticated), c.name)
		assert.Equal(t, c.want != auth.Anonymous, u.InGroup(auth.Authenticated), c.name)
	}
	assert.Equal(t, []string{"devs"}, alice.user.Groups, "the method's user is not changed")
}

// TestTokensHaveABoundedLength checks every function that takes a token: the longest one reaches the
// method, a longer one does not.
func TestTokensHaveABoundedLength(t *testing.T) {
	longest := strings.Repeat("a", auth.MaxToken)
	called := 0
	cert := auth.AuthenticatorFunc(func(*http.Request) (*auth.User, error) {
		called++
		return &auth.User{Name: "alice"}, nil
	})
	for _, token := range []string{longest, longest + "a"} {
		fits := token == longest
		method, r := known{token, &auth.User{Name: "alice"}, nil}, request("Authorization", "Bearer "+token)
		for name, authenticate := range map[string]func() (*auth.User, error){
			"AuthenticateBearer":       func() (*auth.User, error) { return auth.AuthenticateBearer(method, r) },
			"Union":                    func() (*auth.User, error) { return auth.Union(method).Authenticate(r) },
			"Union of no token method": func() (*auth.User, error) { return auth.Union(cert).Authenticate(r) },
			"Union.AuthenticateToken": func() (*auth.User, error) {
				u, _, err := auth.Union(method).AuthenticateToken(t.Context(), token, nil)
				return u, err
			},
		} {
			u, err := authenticate()
			assert.Equal(t, fits, u != nil, name)
			assert.Equal(t, !fits, errors.Is(err, auth.ErrBadToken), "%s: %v", name, err)
		}
	}
	assert.Equal(t, 1, called)
}

// TestUnauthenticatedUsersAreNotAuthenticated checks that only one of the two groups is given to a user.
func TestUnauthenticatedUsersAreNotAuthenticated(t *testing.T) {
	for _, u := range []*auth.User{
		auth.NewAnonymous(), {Name: auth.Anonymous}, {Name: "zoe", Groups: []string{auth.Unauthenticated}},
	} {
		got, err := auth.Union(known{"a", u, nil}).Authenticate(request("Authorization", "Bearer a"))
		require.NoError(t, err)
		assert.Equal(t, u, got)
		assert.False(t, got.InGroup(auth.Authenticated))
	}
}

func TestUnionAuthenticateToken(t *testing.T) {
	m := auth.Union(known{err: errors.New("boom")}, known{"a", &auth.User{Name: "alice"}, nil}, auth.AnonymousAccess)
	u, auds, err := m.AuthenticateToken(context.Background(), "a", []string{"x"})
	require.NoError(t, err)
	assert.Equal(t, []string{auth.Authenticated}, u.Groups)
	assert.Equal(t, []string{"x"}, auds)
	u, _, err = m.AuthenticateToken(context.Background(), "b", nil)
	assert.Nil(t, u)
	assert.Error(t, err)
	_, _, err = m.AuthenticateToken(context.Background(), strings.Repeat("a", auth.MaxToken+1), nil)
	assert.ErrorIs(t, err, auth.ErrBadToken)
}

func FuzzBearerToken(f *testing.F) {
	for _, s := range []string{"Bearer a", "bearer  a", "Basic x", "", "Bearer \x00", "bearer a b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := request()
		r.Header["Authorization"] = []string{header}
		token, ok := auth.BearerToken(r)
		assert.Equal(t, ok, token != "")
		assert.NotContains(t, token, " ")
		u, err := auth.Union(auth.AnonymousAccess).Authenticate(r)
		assert.Equal(t, ok, err != nil)
		assert.Equal(t, ok, u == nil)
	})
}

func ExampleUnion() {
	tokens := known{"secret", &auth.User{Name: "alice"}, nil}
	m := auth.Union(tokens, auth.AnonymousAccess)

	r := httptest.NewRequest("GET", "/", nil)
	u, _ := m.Authenticate(r)
	fmt.Println(u.Name, u.Groups)

	r.Header.Set("Authorization", "Bearer secret")
	u, _ = m.Authenticate(r)
	fmt.Println(u.Name, u.Groups)

	r.Header.Set("Authorization", "Bearer guess")
	_, err := m.Authenticate(r)
	fmt.Println(err)
	// Output:
	// system:anonymous [system:unauthenticated]
	// alice [system:authenticated]
	// auth: the bearer token is not valid
}
