package serviceaccount_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
)

// call sends a request to a server and decodes the response.
func call(t *testing.T, s *server.Server, method, path, token, body string) (int, map[string]any) {
	r, err := http.NewRequest(method, "http://server"+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.Transport().RoundTrip(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var v map[string]any
	require.NoError(t, json.Unmarshal(data, &v), "%s", data)
	return resp.StatusCode, v
}

// TestTokenOfServedAccount creates an account in a server, requests a token,
// authenticates with it, and deletes the account.
func TestTokenOfServedAccount(t *testing.T) {
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	key, err := serviceaccount.GenerateKey()
	require.NoError(t, err)
	tokens, err := serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: b.Client(), Names: b.Names})
	require.NoError(t, err)
	users, err := tokenfile.Parse(strings.NewReader("admin,admin,1\n"))
	require.NoError(t, err)
	b.Authenticators = []auth.Authenticator{users, tokens}
	b.Register(core.Kinds()...)
	sub, err := tokens.Subresource()
	require.NoError(t, err)
	kind := b.Kind("", "ServiceAccount")
	kind.Subresources = append(kind.Subresources, sub)
	b.Register(review.Identity(auth.Union(b.Authenticators...), tokens.Audiences())...)
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()

	accounts := "/api/v1/namespaces/default/serviceaccounts"
	reviews := "/apis/authentication.k8s.io/v1/"
	code, _ := call(t, s, "POST", accounts, "admin", `{"metadata":{"name":"robot"}}`)
	require.Equal(t, 201, code)
	code, answer := call(t, s, "POST", accounts+"/robot/token", "admin", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
	require.Equal(t, 201, code, answer)
	assert.Equal(t, map[string]any{"audiences": []any{issuer}, "expirationSeconds": 3600.0, "boundObjectRef": nil}, answer["spec"])
	token := answer["status"].(map[string]any)["token"].(string)

	code, answer = call(t, s, "POST", reviews+"selfsubjectreviews", token, `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	require.Equal(t, 201, code, answer)
	who := answer["status"].(map[string]any)["userInfo"].(map[string]any)
	assert.Equal(t, "system:serviceaccount:default:robot", who["username"])
	assert.Equal(t, []any{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}, who["groups"])
	code, answer = call(t, s, "POST", reviews+"tokenreviews", "admin", `{"spec":{"token":"`+token+`"}}`)
	require.Equal(t, 201, code, answer)
	assert.Equal(t, true, answer["status"].(map[string]any)["authenticated"])
	assert.Equal(t, []any{issuer}, answer["status"].(map[string]any)["audiences"])

	for body, want := range map[string]int{
		`{"apiVersion":"v1","kind":"ServiceAccount"}`:                                                                                                   400,
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","metadata":{"namespace":"other"},"spec":{}}`:                                    400,
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","metadata":{"name":"other"},"spec":{}}`:                                         422,
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":599}}`:                                              422,
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"nosuch"}}}`: 404,
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"boundObjectRef":{"kind":"ConfigMap","apiVersion":"v1","name":"a"}}}`:   400,
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":[]}}`:                                                       201,
	} {
		code, answer = call(t, s, "POST", accounts+"/robot/token", "admin", body)
		assert.Equal(t, want, code, "%s: %v", body, answer)
	}
	code, _ = call(t, s, "GET", accounts+"/robot/token", "admin", "")
	assert.Equal(t, 405, code)
	code, _ = call(t, s, "POST", accounts+"/missing/token", "admin", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
	assert.Equal(t, 404, code)

	code, _ = call(t, s, "DELETE", accounts+"/robot", "admin", "")
	require.Equal(t, 200, code)
	code, _ = call(t, s, "POST", reviews+"selfsubjectreviews", token, `{}`)
	assert.Equal(t, 401, code, "the account was deleted")
	code, _ = call(t, s, "POST", accounts, "admin", `{"metadata":{"name":"robot"}}`)
	require.Equal(t, 201, code)
	code, _ = call(t, s, "POST", reviews+"selfsubjectreviews", token, `{}`)
	assert.Equal(t, 401, code, "the account was recreated with another uid")
}
