package access_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
)

// setup returns a server with the users root, a member of system:masters, and joe, and its authorizer.
func setup(t *testing.T, c access.Config) (guarded, auth.Authorizer) {
	users, err := tokenfile.Parse(strings.NewReader("root,root,1,system:masters\njoe,joe,2\n"))
	require.NoError(t, err)
	c.Authenticators = []auth.Authenticator{users}
	var authorizer auth.Authorizer
	s := servertest.New(t, func(b *server.Builder) {
		b.Authorizer = nil
		require.NoError(t, access.Setup(b, c))
		authorizer = b.Authorizer
	})
	return guarded{t: t, Server: s}, authorizer
}

// TestMastersAreAllowedBeforeTheAuthorizers checks that an authorizer of the program cannot deny anything to the group
// system:masters.
func TestMastersAreAllowedBeforeTheAuthorizers(t *testing.T) {
	_, authorizer := setup(t, access.Config{Authorizers: func(access.Builtin) []auth.Authorizer { return []auth.Authorizer{auth.DenyAll} }})
	for group, want := range map[string]auth.Decision{auth.Masters: auth.Allow, "devs": auth.Deny} {
		d, _, err := authorizer.Authorize(t.Context(), auth.Attributes{User: &auth.User{Name: "x", Groups: []string{group}}, Verb: "get", Resource: "pods"})
		require.NoError(t, err)
		assert.Equal(t, want, d, group)
	}
}

// TestNodesAreAuthorizedByDefault checks a right that only the Node authorizer grants.
func TestNodesAreAuthorizedByDefault(t *testing.T) {
	_, authorizer := setup(t, access.Config{})
	for group, want := range map[string]auth.Decision{"system:nodes": auth.Allow, "devs": auth.NoOpinion} {
		u := &auth.User{Name: "system:node:n1", Groups: []string{group}}
		d, _, err := authorizer.Authorize(t.Context(), auth.Attributes{User: u, Verb: "create", Version: "v1", Resource: "nodes"})
		require.NoError(t, err)
		assert.Equal(t, want, d, group)
	}
}

// TestUsersCannotGrantMoreThanTheyHave checks that Setup adds the admission plugin against escalation.
func TestUsersCannotGrantMoreThanTheyHave(t *testing.T) {
	g, _ := setup(t, access.Config{})
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
	const rule = `{"metadata":{"name":"NAME"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["create"]}`
	named := func(name, more string) string { return strings.Replace(rule, "NAME", name, 1) + more + "]}" }
	g.must(201, "POST", roles, named("own", ""), "Authorization", "Bearer root")
	g.must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", `{"metadata":{"name":"own"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"own"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"joe"}]}`, "Authorization", "Bearer root")
	g.must(201, "POST", roles, named("same", ""), "Authorization", "Bearer joe")
	code, body := g.send("POST", roles, named("more", `,{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`), "Authorization", "Bearer joe")
	assert.Equal(t, 403, code, body)
}

// TestNoAnonymous checks a path that everybody may read.
func TestNoAnonymous(t *testing.T) {
	for _, refused := range []bool{true, false} {
		g, _ := setup(t, access.Config{NoAnonymous: refused, BootstrapTokens: true})
		code, _ := g.send("GET", "/version", "")
		assert.Equal(t, map[bool]int{true: 401, false: 200}[refused], code)
		code, _ = g.send("GET", "/version", "", "Authorization", "Bearer joe")
		assert.Equal(t, 200, code)
	}
}

// TestSetupKeepsTheAuthorizerOfTheProgram checks that an Authorizer that is set already is an error.
func TestSetupKeepsTheAuthorizerOfTheProgram(t *testing.T) {
	for _, a := range []auth.Authorizer{auth.AllowAll, auth.Chain(auth.DenyAll)} {
		b := &server.Builder{Authorizer: a}
		assert.ErrorContains(t, access.Setup(b, access.Config{}), "Builder.Authorizer must be nil")
		assert.NotNil(t, b.Authorizer)
	}
}
