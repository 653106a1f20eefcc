package access_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
)

// guarded is a server with the usual access control. root has all rights, alice only the rights of every user.
type guarded struct {
	t *testing.T
	*servertest.Server
	key *ecdsa.PrivateKey // signs tokens of service accounts
}

func newGuarded(t *testing.T, change ...func(*access.Config)) guarded {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(secret)
	require.NoError(t, err)
	keys, err := serviceaccount.ParseKeys(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	require.NoError(t, err)
	users, err := tokenfile.Parse(strings.NewReader("root,root,1,system:masters\nalice,alice,2,devs\n"))
	require.NoError(t, err)
	s := servertest.New(t, func(b *server.Builder) {
		b.Authorizer = nil
		tokens, err := serviceaccount.New(serviceaccount.Config{Keys: keys, Client: b.Client(), Names: b.Names})
		require.NoError(t, err)
		c := access.Config{Tokens: tokens, Authenticators: []auth.Authenticator{users}}
		for _, f := range change {
			f(&c)
		}
		require.NoError(t, access.Setup(b, c))
	})
	return guarded{t, s, secret}
}

// send sends a request with headers as key, value pairs.
func (g guarded) send(method, target, body string, headers ...string) (int, map[string]any) {
	g.t.Helper()
	u, err := url.Parse("https://server" + target)
	require.NoError(g.t, err)
	req, err := http.NewRequestWithContext(g.t.Context(), method, "https://server/", strings.NewReader(body))
	require.NoError(g.t, err)
	req.URL = u
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.Transport().RoundTrip(req)
	require.NoError(g.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(g.t, err)
	var answer map[string]any
	_ = json.Unmarshal(data, &answer) // answer stays nil for plain text
	return resp.StatusCode, answer
}

func (g guarded) must(code int, method, target, body string, headers ...string) map[string]any {
	g.t.Helper()
	got, answer := g.send(method, target, body, headers...)
	require.Equal(g.t, code, got, "%s %s: %v", method, target, answer)
	return answer
}

const (
	secrets = "/api/v1/namespaces/default/secrets"
	whoAmI  = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	robots  = "/api/v1/namespaces/default/serviceaccounts"
	request = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`
)

// TestHeadersGiveNothing checks that only the credential authenticates a request, whatever its other headers are.
func TestHeadersGiveNothing(t *testing.T) {
	g := newGuarded(t)
	g.must(201, "POST", secrets, `{"metadata":{"name":"s"}}`, "Authorization", "Bearer root")
	const mine = "Bearer alice"
	tests := []struct {
		name, method, target string
		headers              []string
		code                 int
	}{
		{"nobody", "GET", secrets, nil, 403},
		{"proxy headers", "GET", secrets, []string{"X-Remote-User", "root", "X-Remote-Group", "system:masters"}, 403},
		{"proxy headers beside a token", "GET", secrets, []string{"Authorization", mine, "X-Remote-User", "root", "X-Remote-Group", "system:masters"}, 403},
		{"forwarded", "GET", secrets, []string{"X-Forwarded-User", "root", "X-Forwarded-For", "127.0.0.1", "Forwarded", "for=127.0.0.1"}, 403},
		{"another path", "GET", "/version", []string{"X-Original-URL", secrets, "X-Rewrite-URL", secrets}, 200},
		{"another method", "GET", secrets + "/s", []string{"Authorization", mine, "X-HTTP-Method-Override", "POST"}, 403},
		{"token in the query", "GET", secrets + "?access_token=root&token=root", nil, 403},
		{"token in a cookie", "GET", secrets, []string{"Cookie", "token=root; Authorization=Bearer root"}, 403},
		{"token in other headers", "GET", secrets, []string{"Proxy-Authorization", "Bearer root", "X-Auth-Token", "root"}, 403},
		{"token in a protocol", "GET", secrets, []string{"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.YWxpY2U"}, 403},
		{"upgrade", "GET", secrets, []string{"Authorization", mine, "Connection", "Upgrade", "Upgrade", "websocket"}, 403},
		{"upgrade of a watch", "GET", secrets + "?watch=1", []string{"Authorization", mine, "Connection", "Upgrade", "Upgrade", "websocket"}, 403},
		{"upgrade to SPDY", "POST", "/api/v1/namespaces/default/pods/p/exec", []string{"Authorization", mine, "Connection", "Upgrade", "Upgrade", "SPDY/3.1"}, 403},
		{"two tokens, the first counts", "GET", secrets, []string{"Authorization", mine, "Authorization", "Bearer root"}, 403},
		{"two tokens, the first is bad", "GET", secrets, []string{"Authorization", "Bearer bad", "Authorization", "Bearer root"}, 401},
		{"basic", "GET", secrets, []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("root:root"))}, 403},
		{"bare token", "GET", secrets, []string{"Authorization", "root"}, 403},
		{"a bad token is not anonymous", "GET", "/healthz", []string{"Authorization", "Bearer bad"}, 401},
		{"HEAD", "HEAD", secrets, []string{"Authorization", mine}, 403},
		{"OPTIONS", "OPTIONS", secrets, []string{"Authorization", mine}, 403},
		{"TRACE", "TRACE", secrets, []string{"Authorization", mine}, 403},
		{"CONNECT", "CONNECT", secrets, []string{"Authorization", mine}, 403},
		{"made-up method", "GETS", secrets, []string{"Authorization", mine}, 403},
		{"lower case", "get", secrets, []string{"Authorization", mine}, 403},
		{"TRACE by root", "TRACE", secrets, []string{"Authorization", "Bearer root"}, 405},
		{"CONNECT by root", "CONNECT", secrets, []string{"Authorization", "Bearer root"}, 405},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, answer := g.send(tt.method, tt.target, "", tt.headers...)
			assert.Equal(t, tt.code, code, answer)
			assert.NotContains(t, answer, "items")
		})
	}
}

// TestImpersonationNeedsRights checks every form of impersonation headers.
func TestImpersonationNeedsRights(t *testing.T) {
	g := newGuarded(t)
	root := []string{"Authorization", "Bearer root"}
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	g.must(201, "POST", rbac+"clusterroles", `{"metadata":{"name":"as"},"rules":[{"apiGroups":[""],"resources":["users"],"resourceNames":["carol"],"verbs":["impersonate"]}]}`, root...)
	g.must(201, "POST", rbac+"clusterrolebindings", `{"metadata":{"name":"as"},"roleRef":{"kind":"ClusterRole","name":"as"},"subjects":[{"kind":"User","name":"alice"}]}`, root...)
	for _, tt := range []struct {
		name    string
		headers []string
		code    int
	}{
		{"user", []string{"Impersonate-User", "carol"}, 201},
		{"another user", []string{"Impersonate-User", "root"}, 403},
		{"group", []string{"Impersonate-User", "carol", "Impersonate-Group", "system:masters"}, 403},
		{"lower case", []string{"impersonate-user", "carol", "impersonate-group", "system:masters"}, 403},
		{"second group", []string{"Impersonate-User", "carol", "Impersonate-Group", "", "Impersonate-Group", "system:masters"}, 403},
		{"uid", []string{"Impersonate-User", "carol", "Impersonate-Uid", "1"}, 403},
		{"extra", []string{"Impersonate-User", "carol", "Impersonate-Extra-Scopes", "all"}, 403},
		{"account", []string{"Impersonate-User", "system:serviceaccount:kube-system:default"}, 403},
		{"group alone", []string{"Impersonate-Group", "system:masters"}, 400},
		{"uid alone", []string{"Impersonate-Uid", "1"}, 400},
		{"extra alone", []string{"Impersonate-Extra-A", "b"}, 400},
		{"two users", []string{"Impersonate-User", "carol", "Impersonate-User", "root"}, 201},
		{"two users, the first not allowed", []string{"Impersonate-User", "root", "Impersonate-User", "carol"}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, answer := g.send("POST", whoAmI, "{}", append([]string{"Authorization", "Bearer alice"}, tt.headers...)...)
			assert.Equal(t, tt.code, code, answer)
			if code == 201 {
				info := answer["status"].(map[string]any)["userInfo"].(map[string]any)
				assert.Equal(t, "carol", info["username"])
				assert.Equal(t, []any{"system:authenticated"}, info["groups"])
			}
		})
	}
	code, _ := g.send("POST", whoAmI, "{}", "Impersonate-User", "root")
	assert.Equal(t, 403, code, "impersonation requires the right")
}

// claimsOf returns the claims of a token without verifying it.
func claimsOf(t *testing.T, token string) map[string]any {
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	require.NoError(t, err)
	var claims map[string]any
	require.NoError(t, json.Unmarshal(data, &claims))
	return claims
}

func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
	require.NoError(t, err)
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	require.NoError(t, err)
	return token
}

// TestReviewsAreNoTables checks that kinds that are not stored have no table representation.
func TestReviewsAreNoTables(t *testing.T) {
	g := newGuarded(t)
	as := func(view string) []string {
		return []string{"Authorization", "Bearer root", "Accept", "application/json;as=" + view + ";g=meta.k8s.io;v=v1"}
	}
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	g.must(201, "POST", accounts, `{"metadata":{"name":"robot"}}`, "Authorization", "Bearer root")
	for _, path := range []string{whoAmI, accounts + "/robot/token"} {
		code, _ := g.send("POST", path, "{}", as("Table")...)
		assert.Equal(t, 406, code, path)
		code, answer := g.send("POST", path, "{}", as("PartialObjectMetadata")...)
		assert.Equal(t, 201, code, path)
		assert.Equal(t, "PartialObjectMetadata", answer["kind"], path)
	}
}

// TestBadAccountTokens checks that an invalid token is refused, not treated as anonymous.
func TestBadAccountTokens(t *testing.T) {
	g := newGuarded(t)
	root := []string{"Authorization", "Bearer root"}
	g.must(201, "POST", robots, `{"metadata":{"name":"robot"}}`, root...)
	good := g.must(201, "POST", robots+"/robot/token", request, root...)["status"].(map[string]any)["token"].(string)
	g.must(201, "POST", whoAmI, "{}", "Authorization", "Bearer "+good)
	with := func(changes map[string]any) map[string]any {
		claims := claimsOf(t, good)
		for k, v := range changes {
			claims[k] = v
		}
		return claims
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	require.NotEmpty(t, sign(t, jose.ES256, g.key, with(nil)))
	parts := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	past, future := time.Now().Add(-time.Hour).Unix(), time.Now().Add(time.Hour).Unix()
	inner := func(k string, v any) map[string]any {
		c := claimsOf(t, good)["kubernetes.io"].(map[string]any)
		c[k] = v
		return map[string]any{"kubernetes.io": c}
	}
	for name, token := range map[string]string{
		"another key":        sign(t, jose.ES256, other, with(nil)),
		"the key as text":    sign(t, jose.HS256, []byte(strings.Repeat("k", 32)), with(nil)),
		"alg none":           b64([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"alg None":           b64([]byte(`{"alg":"None","typ":"JWT"}`)) + "." + parts[1] + "." + parts[2],
		"no signature":       parts[0] + "." + parts[1] + ".",
		"two parts":          parts[0] + "." + parts[1],
		"four parts":         good + ".x",
		"changed":            parts[0] + "." + b64([]byte(`{"sub":"system:serviceaccount:kube-system:default"}`)) + "." + parts[2],
		"expired":            sign(t, jose.ES256, g.key, with(map[string]any{"exp": past})),
		"not yet":            sign(t, jose.ES256, g.key, with(map[string]any{"nbf": future})),
		"another audience":   sign(t, jose.ES256, g.key, with(map[string]any{"aud": []string{"elsewhere"}})),
		"another issuer":     sign(t, jose.ES256, g.key, with(map[string]any{"iss": "https://elsewhere"})),
		"another account":    sign(t, jose.ES256, g.key, with(inner("serviceaccount", map[string]any{"name": "default", "uid": "x"}))),
		"an account gone":    sign(t, jose.ES256, g.key, with(inner("serviceaccount", map[string]any{"name": "gone", "uid": "x"}))),
		"a pod that is gone": sign(t, jose.ES256, g.key, with(inner("pod", map[string]any{"name": "gone", "uid": "x"}))),
		"key of the header":  b64([]byte(`{"alg":"ES256","jwk":{"kty":"EC"}}`)) + "." + parts[1] + "." + parts[2],
		"very long":          good + strings.Repeat("A", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			code, answer := g.send("POST", whoAmI, "{}", "Authorization", "Bearer "+token)
			assert.Equal(t, 401, code, answer)
			assert.Equal(t, "Unauthorized", answer["message"], "the response does not disclose details of the token")
		})
	}
}

// TestDeletedOwnersEndTokens checks that the account, pod or secret of a token is looked up at every use.
func TestDeletedOwnersEndTokens(t *testing.T) {
	g := newGuarded(t)
	root := []string{"Authorization", "Bearer root"}
	g.must(201, "POST", robots, `{"metadata":{"name":"robot"}}`, root...)
	const pods = "/api/v1/namespaces/default/pods"
	g.must(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"serviceAccountName":"robot","containers":[{"name":"c","image":"i"}]}}`, root...)
	plain := g.must(201, "POST", robots+"/robot/token", request, root...)["status"].(map[string]any)["token"].(string)
	bound := g.must(201, "POST", robots+"/robot/token", strings.Replace(request, `"spec":{}`,
		`"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"}}`, 1), root...)["status"].(map[string]any)["token"].(string)
	g.must(201, "POST", whoAmI, "{}", "Authorization", "Bearer "+bound)
	g.must(200, "DELETE", pods+"/p?gracePeriodSeconds=0", "", root...)
	g.must(401, "POST", whoAmI, "{}", "Authorization", "Bearer "+bound)
	g.must(201, "POST", whoAmI, "{}", "Authorization", "Bearer "+plain)
	g.must(200, "DELETE", robots+"/robot", "", root...)
	g.must(401, "POST", whoAmI, "{}", "Authorization", "Bearer "+plain)
	g.must(201, "POST", robots, `{"metadata":{"name":"robot"}}`, root...)
	g.must(401, "POST", whoAmI, "{}", "Authorization", "Bearer "+plain)
}

func TestSetupRejectsInvalidBuilder(t *testing.T) {
	b := &server.Builder{Authorizer: auth.AllowAll}
	assert.Error(t, access.Setup(b, access.Config{}), "there is an authorizer")
	b = &server.Builder{}
	assert.ErrorContains(t, access.Setup(b, access.Config{}), "ServiceAccount", "the kinds are not registered")
	b.Register(builtin.Kinds()...)
	require.NoError(t, access.Setup(b, access.Config{NoAnonymous: true}))
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Shutdown(t.Context()))
}
