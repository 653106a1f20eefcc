package access_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
)

// TestControllersKeepToTheirRoles: built-in controllers write as the identities that they have in
// the field, and the default roles permit every write.
func TestControllersKeepToTheirRoles(t *testing.T) {
	for _, profile := range []names.Profile{names.Kubernetes, names.Orch} {
		synctest.Test(t, func(t *testing.T) { controllersKeepToTheirRoles(t, profile) })
	}
}

func controllersKeepToTheirRoles(t *testing.T, profile names.Profile) {
	var mu sync.Mutex
	asked, by := map[auth.Action]*auth.User{}, map[string]bool{}
	var authorizer auth.Authorizer
	users, err := tokenfile.Parse(strings.NewReader("root,root,1,system:masters\n"))
	require.NoError(t, err)
	s := servertest.New(t, func(b *server.Builder) {
		b.Names, b.Authorizer = profile, nil
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Journal", Rules: []admission.Rule{{Groups: []string{"*"}, Resources: []string{"*/*"}}},
			Validate: func(_ context.Context, r *admission.Request) error {
				if r.User.Name == auth.ServerUser || r.User.Name == "root" {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				by[r.User.Name] = true
				asked[auth.Action{
					Verb: strings.ToLower(string(r.Operation)), Group: r.RequestResource.Group, Version: r.RequestResource.Version,
					Resource: r.RequestResource.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
				}] = r.User
				return nil
			},
		})
		require.NoError(t, access.Setup(b, access.Config{Methods: []auth.Authenticator{users}, BootstrapTokens: true, RootCA: []byte("root")}))
		authorizer = b.Authorizer
	})
	g := guarded{t: t, Server: s}
	root := func(code int, method, path, body string, headers ...string) map[string]any {
		t.Helper()
		return g.must(code, method, path, body, append(headers, "Authorization", "Bearer root")...)
	}
	rbac, system := profile.Group(names.GroupRBAC), profile.SystemNamespace("system")
	const maps, claims = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/persistentvolumeclaims"
	owner := root(201, "POST", maps, `{"metadata":{"name":"owner"}}`)["metadata"].(map[string]any)["uid"].(string)
	owned := `"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"` + owner + `"}]`
	root(201, "POST", maps, `{"metadata":{"name":"owned",`+owned+`}}`)
	root(201, "POST", maps, `{"metadata":{"name":"orphan",`+strings.ReplaceAll(owned, owner, "gone")+`}}`)
	root(200, "DELETE", maps+"/owner?propagationPolicy=Orphan", "")
	root(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"ends"}}`)
	s.Settle()
	root(201, "POST", "/api/v1/namespaces/ends/configmaps", `{"metadata":{"name":"m"}}`)
	root(200, "DELETE", "/api/v1/namespaces/ends", "")
	root(201, "POST", claims, `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`)
	root(200, "DELETE", claims+"/c", "")
	root(201, "POST", "/apis/"+rbac+"/v1/clusterroles", `{"metadata":{"name":"part","labels":{"part":"1"}},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`)
	root(201, "POST", "/apis/"+rbac+"/v1/clusterroles", `{"metadata":{"name":"whole"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"part":"1"}}]},"rules":[]}`)
	root(201, "POST", secrets, `{"metadata":{"name":"t","annotations":{"`+profile.Wire(names.ServiceAccountName)+`":"default"}},"type":"`+profile.Wire(names.SecretServiceToken)+`"}`)
	root(201, "POST", "/api/v1/namespaces/"+system+"/secrets", `{"metadata":{"name":"bootstrap-token-abcdef"},"type":"`+profile.Wire(names.SecretBootstrap)+`",
		"stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","expiration":"`+time.Now().Add(time.Minute).UTC().Format(time.RFC3339)+`"}}`)
	s.Settle()
	time.Sleep(time.Hour)
	s.Settle()

	account := func(name string) string { return auth.ServiceAccountUser(system, name) }
	for _, name := range []string{
		profile.Wire(names.UserControllerManager), account("generic-garbage-collector"), account("namespace-controller"), account("pvc-protection-controller"),
		account("clusterrole-aggregation-controller"), account("service-account-controller"), account("root-ca-cert-publisher"), account("token-cleaner"),
	} {
		assert.True(t, by[name], "%s writes nothing: %v", name, by)
	}
	for a, user := range asked {
		a.User = user
		decision, _, err := authorizer.Authorize(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, auth.Allow, decision, "%s: %+v", user.Name, a)
		assert.Contains(t, user.Groups, auth.Authenticated)
	}
	certificates := &auth.User{Name: account("certificate-controller")}
	for _, a := range []auth.Action{
		{Verb: "update", Resource: "certificatesigningrequests", Subresource: "approval"},
		{Verb: "update", Resource: "certificatesigningrequests", Subresource: "status"},
		{Verb: "delete", Resource: "certificatesigningrequests"},
		{Verb: "approve", Resource: "signers", Name: profile.Wire(names.SignerClientNode)},
		{Verb: "sign", Resource: "signers", Name: profile.Wire(names.SignerClient)},
	} {
		a.User, a.Group, a.Version = certificates, profile.Group(names.GroupCertificates), "v1"
		decision, _, err := authorizer.Authorize(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, auth.Allow, decision, "%+v", a)
	}
}
