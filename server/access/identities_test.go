package access_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry/builtin/storagemigration"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
)

// TestControllersKeepToTheirRoles checks that built-in controllers write as their standard identities, and
// that the default roles permit every write.
func TestControllersKeepToTheirRoles(t *testing.T) {
	for _, profile := range []names.Profile{names.Kubernetes, names.Orch} {
		synctest.Test(t, func(t *testing.T) { controllersKeepToTheirRoles(t, profile) })
	}
}

func controllersKeepToTheirRoles(t *testing.T, profile names.Profile) {
	var mu sync.Mutex
	asked, by := map[auth.Attributes]*auth.User{}, map[string]bool{}
	var emptied *meta.Object // the delete options of the namespace controller
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
				if r.Operation == admission.Delete && r.Namespace == "ends" && r.Name == "m" {
					emptied = r.Options
				}
				asked[auth.Attributes{
					Verb: strings.ToLower(string(r.Operation)), Group: r.RequestResource.Group, Version: r.RequestResource.Version,
					Resource: r.RequestResource.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
				}] = r.User
				return nil
			},
		})
		b.Register(storagemigration.Kinds()...)
		require.NoError(t, access.Setup(b, access.Config{Authenticators: []auth.Authenticator{users}, BootstrapTokens: true, RootCA: []byte("root")}))
		authorizer = b.Authorizer
	})
	g := guarded{t: t, Server: s}
	root := func(code int, method, path, body string, headers ...string) map[string]any {
		t.Helper()
		return g.must(code, method, path, body, append(headers, "Authorization", "Bearer root")...)
	}
	rbac, system := profile.Group(wellknown.GroupRBAC), profile.SystemNamespace("system")
	const maps, claims = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/persistentvolumeclaims"
	owner := root(201, "POST", maps, `{"metadata":{"name":"owner"}}`)["metadata"].(map[string]any)["uid"].(string)
	owned := `"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"` + owner + `"}]`
	root(201, "POST", maps, `{"metadata":{"name":"owned",`+owned+`}}`)
	root(201, "POST", maps, `{"metadata":{"name":"orphan",`+strings.ReplaceAll(owned, owner, "gone")+`}}`)
	root(200, "DELETE", maps+"/owner?propagationPolicy=Orphan", "")
	root(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"ends"}}`)
	s.Settle()
	content := root(201, "POST", "/api/v1/namespaces/ends/configmaps", `{"metadata":{"name":"m"}}`)["metadata"].(map[string]any)
	root(200, "DELETE", "/api/v1/namespaces/ends", "")
	root(201, "POST", claims, `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`)
	root(200, "DELETE", claims+"/c", "")
	root(201, "POST", "/apis/"+rbac+"/v1/clusterroles", `{"metadata":{"name":"part","labels":{"part":"1"}},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`)
	root(201, "POST", "/apis/"+rbac+"/v1/clusterroles", `{"metadata":{"name":"whole"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"part":"1"}}]},"rules":[]}`)
	root(201, "POST", secrets, `{"metadata":{"name":"t","annotations":{"`+profile.Wire(wellknown.ServiceAccountName)+`":"default"}},"type":"`+profile.Wire(wellknown.SecretServiceToken)+`"}`)
	root(201, "POST", "/api/v1/namespaces/"+system+"/secrets", `{"metadata":{"name":"bootstrap-token-abcdef"},"type":"`+profile.Wire(wellknown.SecretBootstrap)+`",
		"stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","expiration":"`+time.Now().Add(time.Minute).UTC().Format(time.RFC3339)+`"}}`)
	networks := "/apis/" + profile.Group(wellknown.GroupNetworking) + "/v1/servicecidrs"
	initial := root(200, "GET", networks, "")["items"].([]any)[0].(map[string]any)["metadata"].(map[string]any)["name"].(string)
	root(201, "POST", networks, `{"metadata":{"name":"n"},"spec":{"cidrs":["10.9.0.0/24"]}}`)
	root(200, "DELETE", networks+"/n", "")
	root(200, "DELETE", networks+"/"+initial, "")
	migrations, gadgets := profile.Group(wellknown.GroupMigration), "gadgets.example.com"
	root(201, "POST", "/apis/"+profile.Group(wellknown.GroupExtensions)+"/v1/customresourcedefinitions", `{"metadata":{"name":"`+gadgets+`"},"spec":{"group":"example.com",
		"names":{"plural":"gadgets","kind":"Gadget"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	s.Settle()
	root(201, "POST", "/apis/"+migrations+"/v1/storageversionmigrations", `{"metadata":{"name":"g"},"spec":{"resource":{"group":"example.com","resource":"gadgets"}}}`)
	s.Settle()
	time.Sleep(time.Hour)
	s.Settle()

	account := func(name string) string { return auth.ServiceAccountUser(system, name) }
	for _, name := range []string{
		profile.Wire(wellknown.UserControllerManager), account("generic-garbage-collector"), account("namespace-controller"), account("pvc-protection-controller"),
		account("clusterrole-aggregation-controller"), account("service-account-controller"), account("root-ca-cert-publisher"), account("token-cleaner"),
		account("service-cidrs-controller"), account("storage-version-migrator-controller"),
	} {
		assert.True(t, by[name], "%s writes nothing: %v", name, by)
	}
	root(200, "GET", networks+"/"+initial, "")
	migrated := root(200, "GET", "/apis/"+migrations+"/v1/storageversionmigrations/g", "")
	assert.Contains(t, fmt.Sprint(migrated["status"]), "Succeeded")
	require.NotNil(t, emptied)
	assert.Equal(t, map[string]any{"uid": content["uid"], "resourceVersion": content["resourceVersion"]}, emptied.Map("preconditions"))
	assert.Equal(t, "Background", emptied.String("propagationPolicy"))
	for a, user := range asked {
		a.User = user
		decision, _, err := authorizer.Authorize(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, auth.Allow, decision, "%s: %+v", user.Name, a)
		assert.Contains(t, user.Groups, auth.Authenticated)
	}
	certificates := &auth.User{Name: account("certificate-controller")}
	for _, a := range []auth.Attributes{
		{Verb: "update", Resource: "certificatesigningrequests", Subresource: "approval"},
		{Verb: "update", Resource: "certificatesigningrequests", Subresource: "status"},
		{Verb: "delete", Resource: "certificatesigningrequests"},
		{Verb: "approve", Resource: "signers", Name: profile.Wire(wellknown.SignerClientNode)},
		{Verb: "sign", Resource: "signers", Name: profile.Wire(wellknown.SignerClient)},
	} {
		a.User, a.Group, a.Version = certificates, profile.Group(wellknown.GroupCertificates), "v1"
		decision, _, err := authorizer.Authorize(t.Context(), a)
		require.NoError(t, err)
		assert.Equal(t, auth.Allow, decision, "%+v", a)
	}
}

// TestControllerOfProgramHasNoBuiltinIdentity checks that a controller that a program names like a built-in
// controller writes as the server.
func TestControllerOfProgramHasNoBuiltinIdentity(t *testing.T) {
	maps := meta.GroupResource{Resource: "configmaps"}
	for _, name := range server.ControllerNames() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var writer string
				s := servertest.New(t, func(b *server.Builder) {
					b.Admission = append(b.Admission, admission.Plugin{
						Name: "Journal", Rules: []admission.Rule{{Groups: []string{""}, Resources: []string{"configmaps"}}},
						Validate: func(_ context.Context, r *admission.Request) error {
							if r.Name == "made" {
								writer = r.User.Name
							}
							return nil
						},
					})
					b.Controllers = append(b.Controllers, client.Controller{
						Name: name, Types: []meta.GroupResource{maps}, EveryServer: true,
						MapEvent: func(client.Event) []string { return []string{"made"} },
						Reconcile: func(ctx context.Context, c client.Client, key string) (time.Duration, error) {
							_, err := c.Create(ctx, maps, meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": key, "namespace": "default"}}))
							if meta.IsAlreadyExists(err) {
								err = nil
							}
							return 0, err
						},
					})
				})
				guarded{t: t, Server: s}.must(201, "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"cause"}}`)
				s.Settle()
				assert.Equal(t, auth.ServerUser, writer)
			})
		})
	}
}
