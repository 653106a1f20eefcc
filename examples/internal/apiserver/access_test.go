package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// step is a request and the expected answer.
type step struct {
	as, do, body string
	code         int
	want         string // expected fields of the answer: "a.b=c d=e"; for a Status also causes=FIELD,FIELD
}

// play makes the requests in order. The group of a body without apiVersion is that of its path.
func play(t *testing.T, address string, steps []step) {
	for _, s := range steps {
		method, path, _ := strings.Cut(s.do, " ")
		token := s.as
		if token != "" && !strings.Contains(token, ".") {
			token += "-token"
		}
		media := "application/json"
		if method == "PATCH" {
			media = "application/merge-patch+json"
		}
		code, answer := ask(t, nil, method, address+path, token, s.body, "Content-Type", media)
		require.Equal(t, s.code, code, "%s %s: %v", s.do, s.body, answer)
		for _, w := range strings.Fields(s.want) {
			field, want, _ := strings.Cut(w, "=")
			assert.Equal(t, want, fieldText(answer, field), "%s %s: %s of %v", s.do, s.body, field, answer)
		}
	}
}

// fieldText returns a field of an answer as text.
func fieldText(answer map[string]any, field string) string {
	o := meta.NewObject(answer)
	if field == "causes" {
		var fields []string
		for _, c := range o.List("details", "causes") {
			fields = append(fields, fmt.Sprint(c.(map[string]any)["field"]))
		}
		return strings.Join(fields, ",")
	}
	v, ok := o.Get(strings.Split(field, ".")...)
	if !ok {
		return "-"
	}
	if m, ok := v.(map[string]any); ok {
		var keys []string
		for k := range m {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		return "{" + strings.Join(keys, ",") + "}"
	}
	return fmt.Sprint(v)
}

// users writes a token file with the tokens NAME-token for admin, alice and carol, and returns its
// path.
func users(t *testing.T) string {
	return files{t, t.TempDir()}.put("users.csv", "admin-token,admin,1,system:masters\nalice-token,alice,2,devs\ncarol-token,carol,4\n")
}

// TestReviewsAreAnsweredAndNotStored: review kinds are answered and not stored.
func TestReviewsAreAnsweredAndNotStored(t *testing.T) {
	address := startServer(t, "--token-auth-file", users(t))
	const (
		authn = "/apis/authentication.k8s.io/v1/"
		authz = "/apis/authorization.k8s.io/v1/"
		pods  = `"resourceAttributes":{"verb":"get","resource":"pods","namespace":"default"}`
		gone  = `"resourceAttributes":{"verb":"get","resource":"pods","namespace":"gone"}`
	)
	play(t, address, []step{
		{"alice", "POST " + authn + "selfsubjectreviews", `null`, 201, "status.userInfo.username=alice"},
		{"alice", "POST " + authn + "selfsubjectreviews", `{"metadata":{"name":"n","labels":{"a":"b"}},"status":{"userInfo":{"username":"admin"}}}`, 201,
			"metadata={creationTimestamp} status.userInfo.username=alice"},
		{"alice", "GET " + authn + "selfsubjectreviews/x", ``, 403, ""},
		{"admin", "GET " + authn + "selfsubjectreviews/x", ``, 404, ""},
		{"admin", "POST " + authn + "tokenreviews/x", `{"spec":{"token":"x"}}`, 404, ""},
		{"admin", "GET " + authn + "tokenreviews", ``, 405, ""},
		{"admin", "POST " + authn + "tokenreviews", `null`, 400, ""},
		{"admin", "POST " + authn + "tokenreviews", `{"metadata":{"uid":"u","creationTimestamp":"2020-01-01T00:00:00Z","name":"n"},"spec":{"token":"alice-token"}}`, 201,
			"metadata.uid=- metadata.creationTimestamp=- metadata.name=n status.user.username=alice"},
		{"admin", "POST " + authz + "selfsubjectaccessreviews", `null`, 422, "causes=spec"},
		{"admin", "POST " + authz + "selfsubjectaccessreviews", `{"metadata":{"uid":"u"},"spec":{` + pods + `}}`, 201, "metadata.uid=- status.allowed=true"},
		{"admin", "POST " + authz + "subjectaccessreviews", `{"metadata":{"name":"n"},"spec":{"user":"u",` + pods + `}}`, 422, "causes=metadata"},
		{"admin", "POST " + authz + "namespaces/gone/localsubjectaccessreviews", `{"spec":{"user":"u",` + gone + `}}`, 201, "status.allowed=false"},
		{"admin", "POST " + authz + "localsubjectaccessreviews", `{"spec":{"user":"u",` + pods + `}}`, 404, ""},
		{"admin", "POST " + authz + "namespaces/default/subjectaccessreviews", `{"spec":{"user":"u",` + pods + `}}`, 404, ""},
		{"carol", "POST " + authz + "selfsubjectrulesreviews", `{"spec":{}}`, 400, "details.causes=-"},
		{"carol", "POST " + authz + "selfsubjectrulesreviews", `{"metadata":{"name":"n"},"spec":{"namespace":"gone"}}`, 201, "metadata={} spec={} status.incomplete=false"},
		{"admin", "POST /api/v1/namespaces/default/configmaps", `null`, 422, "causes=metadata.name"},
	})
}

// TestNamespaceAdminHasNoAccessOutside: a user with all rights in one namespace has none outside it,
// however the path is written.
func TestNamespaceAdminHasNoAccessOutside(t *testing.T) {
	address := startServer(t, "--token-auth-file", users(t))
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	play(t, address, []step{
		{"admin", "POST /api/v1/namespaces", `{"metadata":{"name":"victim"}}`, 201, ""},
		{"admin", "POST /api/v1/namespaces/victim/secrets", `{"metadata":{"name":"s"}}`, 201, ""},
		{"admin", "POST " + rbac + "namespaces/default/rolebindings", `{"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},
			"subjects":[{"kind":"User","name":"carol"}]}`, 201, ""},
		{"carol", "GET /api/v1/namespaces/default", ``, 200, "metadata.name=default"},
		{"carol", "GET /api/v1/namespaces/default/secrets", ``, 200, "kind=SecretList"},

		{"carol", "GET /api/v1/namespaces/default/namespaces", ``, 404, ""},
		{"carol", "GET /api/v1/namespaces/default/namespaces?watch=true", ``, 404, ""},
		{"carol", "GET /api/v1/watch/namespaces/default/namespaces", ``, 404, ""},
		{"carol", "POST /api/v1/namespaces/default/namespaces", `{"metadata":{"name":"mine"}}`, 404, ""},
		{"carol", "GET /api/v1/namespaces/default/namespaces/victim", ``, 404, ""},
		{"carol", "PATCH /api/v1/namespaces/default/namespaces/victim", `{"metadata":{"labels":{"a":"b"}}}`, 404, ""},
		{"carol", "PUT /api/v1/namespaces/default/namespaces/victim/finalize", `{}`, 404, ""},
		{"carol", "DELETE /api/v1/namespaces/default/namespaces/victim", ``, 404, ""},
		{"carol", "DELETE /api/v1/namespaces/default/namespaces", ``, 404, ""},
		{"carol", "GET /api/v1/namespaces/victim%2Fsecrets", ``, 403, ""},
		{"carol", "GET /api/v1/namespaces/victim/secrets", ``, 403, ""},
		{"carol", "LIST /api/v1/namespaces/victim/secrets", ``, 403, ""},
		{"carol", "GET " + rbac + "namespaces/default/clusterroles", ``, 404, ""},
		{"carol", "GET " + rbac + "namespaces/default/clusterroles?watch=true", ``, 404, ""},
		{"carol", "POST " + rbac + "namespaces/default/clusterrolebindings", `{}`, 404, ""},
		{"carol", "DELETE " + rbac + "namespaces/default/clusterrolebindings", ``, 404, ""},
		{"carol", "POST /apis/certificates.k8s.io/v1/namespaces/default/certificatesigningrequests", `{}`, 404, ""},
		{"carol", "POST /api/v1/namespaces/default/configmaps", `{"metadata":{"name":"c","namespace":"victim"}}`, 400, ""},
		{"carol", "POST /api/v1/namespaces/default/serviceaccounts/default/token", `{"metadata":{"namespace":"victim"}}`, 400, ""},
		{"admin", "GET /api/v1/namespaces/victim/secrets/s", ``, 200, "metadata.name=s"},
	})
}

// TestVerbsAreNotHTTPMethods: the verbs of the API are not accepted as HTTP methods.
func TestVerbsAreNotHTTPMethods(t *testing.T) {
	address := startServer(t, "--token-auth-file", users(t))
	const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	play(t, address, []step{
		{"admin", "POST /api/v1/namespaces/default/secrets", `{"metadata":{"name":"x"}}`, 201, ""},
		{"admin", "POST " + rbac + "roles", `{"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["secrets"],"resourceNames":["x"],
			"verbs":["get","list","watch","create","update","delete","deletecollection"]}]}`, 201, ""},
		{"admin", "POST " + rbac + "rolebindings", `{"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"carol"}]}`, 201, ""},
		{"carol", "GET /api/v1/namespaces/default/secrets/x", ``, 200, ""},
		{"carol", "LIST /api/v1/namespaces/default/secrets/x", ``, 403, ""},
		{"carol", "WATCH /api/v1/namespaces/default/secrets/x", ``, 403, ""},
		{"carol", "CREATE /api/v1/namespaces/default/secrets/x", `{}`, 403, ""},
		{"carol", "DELETECOLLECTION /api/v1/namespaces/default/secrets/x", ``, 403, ""},
		{"carol", "delete /api/v1/namespaces/default/secrets/x", ``, 403, ""},
		{"carol", "DELETE /api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dx", ``, 403, ""},
		{"admin", "LIST /api/v1/namespaces/default/secrets", ``, 405, ""},
		{"admin", "OPTIONS /api/v1/namespaces/default/secrets", ``, 405, ""},
		{"carol", "GET /api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dx", ``, 200, "kind=SecretList"},
		{"carol", "GET /api/v1/namespaces/default/secrets?fieldSelector=metadata.name!%3Dx", ``, 403, ""},
		{"carol", "GET /api/v1/namespaces/default/secrets?fieldSelector=type%3DOpaque", ``, 403, ""},
	})
}
