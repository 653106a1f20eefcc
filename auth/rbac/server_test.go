package rbac_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

// guarded is a server with RBAC. In the namespace default, alice may write roles
// and bindings and get ConfigMaps. Tokens equal user names; root is a master.
type guarded struct {
	t *testing.T
	*servertest.Server
}

func newGuarded(t *testing.T) guarded {
	tokens, err := tokenfile.Parse(strings.NewReader("root,root,1,system:masters\nalice,alice,2\ncarol,carol,3\n"))
	require.NoError(t, err)
	s := servertest.New(t, func(b *server.Builder) {
		roles := rbac.New(b.Client(), b.Names)
		all := auth.Chain(auth.Superuser(auth.Masters), roles)
		b.Authorizer, b.Authenticators = all, []auth.Authenticator{tokens, auth.AnonymousAccess}
		b.Admission = []admission.Plugin{plugins.RBACEscalation(roles)}
	})
	g := guarded{t, s}
	g.must(201, "root", "POST", rbacPath+"namespaces/default/roles", `{"metadata":{"name":"w"},"rules":[
		{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["*"],"resourceNames":["x"]},
		{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["create","get","update","patch","delete"]},
		{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}`)
	g.must(201, "root", "POST", rbacPath+"namespaces/default/rolebindings", `{"metadata":{"name":"w"},
		"roleRef":{"kind":"Role","name":"w"},"subjects":[{"kind":"User","name":"alice"}]}`)
	return g
}

// call sends a request without normalizing its path.
func (g guarded) call(token, method, target, body, media string) (int, string) {
	u, err := url.Parse("https://server" + target)
	require.NoError(g.t, err)
	req, err := http.NewRequest(method, "https://server/", strings.NewReader(body))
	require.NoError(g.t, err)
	req.URL = u
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", media)
	resp, err := g.Transport().RoundTrip(req)
	require.NoError(g.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(g.t, err)
	return resp.StatusCode, string(data)
}

// must sends a request and requires a response code.
func (g guarded) must(code int, token, method, target, body string) {
	g.t.Helper()
	got, answer := g.call(token, method, target, body, "application/json")
	require.Equal(g.t, code, got, answer)
}

// TestNoRequestEscalates tries to grant rights by every kind of write.
func TestNoRequestEscalates(t *testing.T) {
	g := newGuarded(t)
	const (
		secrets = `{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`
		own     = `{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}`
		roles   = rbacPath + "namespaces/default/roles"
		binds   = rbacPath + "namespaces/default/rolebindings"
		head    = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":`
		bind    = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":`
		apply   = "application/apply-patch+yaml"
		merge   = "application/merge-patch+json"
		ops     = "application/json-patch+json"
		plain   = "application/json"
	)
	strong := `},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"strong"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}`
	g.must(201, "root", "POST", roles, head+`"strong"},"rules":[`+secrets+`]}`)
	g.must(201, "root", "POST", binds, strings.Replace(bind+`"strong"`+strong, "alice", "carol", 1))
	g.must(201, "alice", "POST", roles, head+`"mine"},"rules":[`+own+`]}`)
	tests := []struct{ name, method, target, body, media string }{
		{"create", "POST", roles, head + `"a"},"rules":[` + secrets + `]}`, plain},
		{"create dry", "POST", roles + "?dryRun=All", head + `"a"},"rules":[` + secrets + `]}`, plain},
		{"generated name", "POST", roles, strings.Replace(head, `"name"`, `"generateName"`, 1) + `"a"},"rules":[` + secrets + `]}`, plain},
		{"update that creates", "PUT", roles + "/a", head + `"a"},"rules":[` + secrets + `]}`, plain},
		{"apply that creates", "PATCH", roles + "/a?fieldManager=f", head + `"a"},"rules":[` + secrets + `]}`, apply},
		{"apply that creates, dry", "PATCH", roles + "/a?fieldManager=f&dryRun=All", head + `"a"},"rules":[` + secrets + `]}`, apply},
		{"update", "PUT", roles + "/mine", head + `"mine"},"rules":[` + own + "," + secrets + `]}`, plain},
		{"update dry", "PUT", roles + "/mine?dryRun=All", head + `"mine"},"rules":[` + secrets + `]}`, plain},
		{"merge patch", "PATCH", roles + "/mine", `{"rules":[` + secrets + `]}`, merge},
		{"json patch", "PATCH", roles + "/mine", `[{"op":"add","path":"/rules/0/verbs/-","value":"*"}]`, ops},
		{"json patch, copy", "PATCH", roles + "/mine", `[{"op":"replace","path":"/rules/0/resources","value":["*"]}]`, ops},
		{"apply", "PATCH", roles + "/mine?fieldManager=f&force=true", head + `"mine"},"rules":[` + secrets + `]}`, apply},
		{"own role", "PATCH", roles + "/w", `{"rules":[` + secrets + `]}`, merge},
		{"wildcards", "POST", roles, head + `"a"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`, plain},
		{"bind", "POST", binds, bind + `"a"` + strong, plain},
		{"bind dry", "POST", binds + "?dryRun=All", bind + `"a"` + strong, plain},
		{"bind by update", "PUT", binds + "/strong", bind + `"strong"` + strong, plain},
		{"bind by update that creates", "PUT", binds + "/a", bind + `"a"` + strong, plain},
		{"bind by patch", "PATCH", binds + "/strong", `[{"op":"add","path":"/subjects/-","value":{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}}]`, ops},
		{"bind by apply", "PATCH", binds + "/a?fieldManager=f", bind + `"a"` + strong, apply},
		{"bind cluster-admin", "POST", binds, strings.Replace(strings.Replace(bind+`"a"`+strong, `"Role"`, `"ClusterRole"`, 1), `"strong"`, `"w"`, 1), plain},
		{"cluster role", "POST", rbacPath + "clusterroles", strings.Replace(head, `"Role"`, `"ClusterRole"`, 1) + `"a"},"rules":[` + own + `]}`, plain},
		{"cluster binding", "POST", rbacPath + "clusterrolebindings", strings.Replace(bind, "RoleBinding", "ClusterRoleBinding", 1) + `"a"` + strong, plain},
		{"another namespace", "POST", rbacPath + "namespaces/kube-system/roles", head + `"a"},"rules":[` + own + `]}`, plain},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, answer := g.call("alice", tt.method, tt.target, tt.body, tt.media)
			if tt.name == "bind cluster-admin" {
				assert.Equal(t, 404, code, answer) // the role does not exist, and alice may not bind it
				return
			}
			assert.Equal(t, 403, code, answer)
		})
	}
	g.must(403, "alice", "GET", "/api/v1/namespaces/default/secrets/s", "")
	g.must(404, "carol", "GET", "/api/v1/namespaces/default/secrets/s", "")
}

// TestAggregationRequiresAllRights: the rules of an aggregated ClusterRole can
// grow to anything.
func TestAggregationRequiresAllRights(t *testing.T) {
	g := newGuarded(t)
	g.must(201, "root", "POST", rbacPath+"clusterroles", `{"metadata":{"name":"cw"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["create","update","patch","get"]}]}`)
	g.must(201, "root", "POST", rbacPath+"clusterrolebindings", `{"metadata":{"name":"cw"},"roleRef":{"kind":"ClusterRole","name":"cw"},"subjects":[{"kind":"User","name":"carol"}]}`)
	const rule = `"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}`
	g.must(403, "carol", "POST", rbacPath+"clusterroles", `{"metadata":{"name":"x"},`+rule+`}`)
	g.must(201, "carol", "POST", rbacPath+"clusterroles", `{"metadata":{"name":"x"}}`)
	g.must(403, "carol", "PUT", rbacPath+"clusterroles/x", `{"metadata":{"name":"x"},`+rule+`}`)
	g.must(201, "root", "POST", rbacPath+"clusterroles", `{"metadata":{"name":"y"},`+rule+`}`)
	g.must(403, "carol", "PUT", rbacPath+"clusterroles/y", `{"metadata":{"name":"y"}}`)
}

func TestDeletedBindingHasNoEffectOnNextRequest(t *testing.T) {
	g := newGuarded(t)
	for range 20 {
		g.must(404, "alice", "GET", "/api/v1/namespaces/default/configmaps/none", "")
		g.must(200, "root", "DELETE", rbacPath+"namespaces/default/rolebindings/w", "")
		g.must(403, "alice", "GET", "/api/v1/namespaces/default/configmaps/none", "")
		g.must(201, "root", "POST", rbacPath+"namespaces/default/rolebindings", `{"metadata":{"name":"w"},"roleRef":{"kind":"Role","name":"w"},"subjects":[{"kind":"User","name":"alice"}]}`)
	}
}

// TestPathSpellingsDoNotBypassAuthorization requests a secret by unusual paths.
func TestPathSpellingsDoNotBypassAuthorization(t *testing.T) {
	g := newGuarded(t)
	g.must(201, "root", "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"},"stringData":{"k":"hidden"}}`)
	g.must(201, "root", "POST", rbacPath+"clusterroles", `{"metadata":{"name":"u"},"rules":[{"nonResourceURLs":["/api/v1/namespaces/default/configmaps/*","/healthz/*","//*","/./*"],"verbs":["get"]}]}`)
	g.must(201, "root", "POST", rbacPath+"clusterrolebindings", `{"metadata":{"name":"u"},"roleRef":{"kind":"ClusterRole","name":"u"},"subjects":[{"kind":"User","name":"alice"}]}`)
	for _, path := range []string{
		"/api/v1/namespaces/default/secrets/s", "/api/v1/namespaces/default/secrets/s/", "//api/v1/namespaces/default/secrets/s",
		"/api//v1/namespaces/default/secrets/s", "/api/v1/namespaces/default//secrets/s", "/api/v1/namespaces//default/secrets/s",
		"/api/v1/namespaces/default/%73ecrets/s", "/api/v1/namespaces/default%2fsecrets/s", "/api/v1/namespaces/default/secrets%2fs",
		"/api/v1/namespaces/default/configmaps/../secrets/s", "/api/v1/namespaces/default/configmaps/%2e%2e/secrets/s",
		"/api/v1/namespaces/default/configmaps/..%2fsecrets%2fs", "/./api/v1/namespaces/default/secrets/s", "/healthz/../api/v1/namespaces/default/secrets/s",
		"/api/v1/namespaces/default/Secrets/s", "/API/v1/namespaces/default/secrets/s", "/api/V1/namespaces/default/secrets/s",
		"/api/v1/namespaces/default/secrets./s", "/api/v1/namespaces/default./secrets/s", "/api/v1/namespaces/default/secrets/s.",
		"/api/v1/watch/namespaces/default/secrets/s", "/api/v1/watch/namespaces/default/secrets", "/api/v1/secrets",
		"/api/v1/secrets?fieldSelector=metadata.name%3Ds", "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Ds&watch=1",
		"/api/v1/namespaces/default/configmaps/s?resource=secrets", "/api/v1/namespaces/default/configmaps/../../../../v1/secrets",
		"/api/v1/namespaces/default/secrets/s;x", "/api/v1/namespaces/default/secrets/s%00", "/api/v1/namespaces/default/secrets/s%20",
	} {
		code, answer := g.call("alice", "GET", path, "", "application/json")
		assert.NotEqual(t, 200, code, path)
		assert.Less(t, code, 500, path)
		assert.NotContains(t, answer, "aGlkZGVu", path)
		code, _ = g.call("", "GET", path, "", "application/json")
		assert.Equal(t, 403, code, "anonymous: %s", path)
	}
}
