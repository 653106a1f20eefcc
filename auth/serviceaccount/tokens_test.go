package serviceaccount_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

const issuer = "https://kubernetes.default.svc.cluster.local"

// world has Tokens over a client with an account, pods, a secret and a node, and
// a clock.
type world struct {
	*testing.T
	client *testclient.Client
	raw    *ecdsa.PrivateKey // of key
	key    serviceaccount.Key
	now    time.Time
	tokens *serviceaccount.Tokens
	warned []string
}

func newWorld(t *testing.T, change ...func(*serviceaccount.Config)) *world {
	w := &world{T: t, client: &testclient.Client{}, now: time.Unix(1_700_000_000, 0)}
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	w.raw = raw
	w.key, err = serviceaccount.NewKey(raw)
	require.NoError(t, err)
	c := serviceaccount.Config{Keys: []serviceaccount.Key{w.key}, Client: w.client, Names: names.Kubernetes, Now: func() time.Time { return w.now }}
	for _, f := range change {
		f(&c)
	}
	w.tokens, err = serviceaccount.New(c)
	require.NoError(t, err)
	w.put("serviceaccounts", "ns", "robot", "sa-1", nil)
	w.put("pods", "ns", "p", "pod-1", map[string]any{"spec": map[string]any{"serviceAccountName": "robot", "nodeName": "n1"}})
	w.put("pods", "ns", "stranger", "pod-2", map[string]any{"spec": map[string]any{"serviceAccountName": "other"}})
	w.put("secrets", "ns", "s", "secret-1", nil)
	w.put("nodes", "", "n1", "node-1", nil)
	return w
}

func (w *world) put(resource, ns, name, uid string, more map[string]any) {
	tree := map[string]any{"metadata": map[string]any{"name": name, "namespace": ns, "uid": uid}}
	for k, v := range more {
		tree[k] = v
	}
	w.client.Put(resource, tree)
}

func (w *world) terminate(resource, ns, name string, at time.Time) {
	r, k := meta.GroupResource{Resource: resource}, meta.Key{Namespace: ns, Name: name}
	o, err := w.client.Get(context.Background(), r, k)
	require.NoError(w, err)
	o.SetTime(at, "metadata", "deletionTimestamp")
	w.client.Put(resource, o.Tree())
}

func (w *world) remove(resource, ns, name string) {
	require.NoError(w, w.client.Delete(context.Background(), meta.GroupResource{Resource: resource}, meta.Key{Namespace: ns, Name: name}, registry.DeleteOptions{}))
}

func (w *world) request(account string, body string) (*meta.Object, error) {
	var tree map[string]any
	require.NoError(w, json.Unmarshal([]byte(body), &tree))
	return w.tokens.TokenRequest(context.Background(), &registry.Call{
		Key: meta.Key{Namespace: "ns", Name: account}, Object: meta.NewObject(tree), Names: names.Kubernetes,
		Warn: func(text string) { w.warned = append(w.warned, text) },
	})
}

// issue returns a token of the account robot for a TokenRequest spec in JSON.
func (w *world) issue(spec string) string {
	o, err := w.request("robot", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":`+spec+`}`)
	require.NoError(w, err)
	return o.String("status", "token")
}

func (w *world) authenticate(token string, audiences ...string) (*auth.User, []string, error) {
	return w.tokens.AuthenticateToken(context.Background(), token, audiences)
}

func TestTokenRequestReturnsToken(t *testing.T) {
	w := newWorld(t)
	o, err := w.request("robot", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
	require.NoError(t, err)
	assert.Equal(t, []string{issuer}, o.Strings("spec", "audiences"))
	assert.Equal(t, int64(3600), o.Int("spec", "expirationSeconds"))
	v, ok := o.Get("spec", "boundObjectRef")
	assert.True(t, ok)
	assert.Nil(t, v)
	assert.Equal(t, "robot", o.Name())
	assert.Equal(t, "ns", o.Namespace())
	assert.NotEmpty(t, o.UID())
	assert.Equal(t, w.now.Add(time.Hour), o.Time("status", "expirationTimestamp").Local())

	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+o.String("status", "token"))
	u, err := w.tokens.Authenticate(r)
	require.NoError(t, err)
	assert.Equal(t, "system:serviceaccount:ns:robot", u.Name)
	assert.Equal(t, "sa-1", u.UID)
	assert.Equal(t, []string{"system:serviceaccounts", "system:serviceaccounts:ns"}, u.Groups)
	require.Len(t, u.Extra["authentication.kubernetes.io/credential-id"], 1)
	assert.Regexp(t, `^JTI=[0-9a-f-]{36}$`, u.Extra["authentication.kubernetes.io/credential-id"][0])
	assert.Len(t, u.Extra, 1)
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(o.String("status", "token"), ".")[1])
	require.NoError(t, err)
	var claims map[string]any
	require.NoError(t, json.Unmarshal(payload, &claims))
	assert.Equal(t, []any{issuer}, claims["aud"], "a single audience is a list")
}

func TestBoundTokenHasObjectInExtra(t *testing.T) {
	w := newWorld(t)
	u, _, err := w.authenticate(w.issue(`{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"pod-1"}}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"p"}, u.Extra["authentication.kubernetes.io/pod-name"])
	assert.Equal(t, []string{"pod-1"}, u.Extra["authentication.kubernetes.io/pod-uid"])
	assert.Equal(t, []string{"n1"}, u.Extra["authentication.kubernetes.io/node-name"])
	assert.Equal(t, []string{"node-1"}, u.Extra["authentication.kubernetes.io/node-uid"])

	u, _, err = w.authenticate(w.issue(`{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"s"}}`))
	require.NoError(t, err)
	assert.Len(t, u.Extra, 1)

	u, _, err = w.authenticate(w.issue(`{"boundObjectRef":{"kind":"Node","apiVersion":"v1","name":"n1"}}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"n1"}, u.Extra["authentication.kubernetes.io/node-name"])
}

func TestTokenRequestRefusals(t *testing.T) {
	w := newWorld(t)
	w.put("pods", "ns", "nameless", "pod-4", map[string]any{"spec": map[string]any{}})
	w.put("pods", "other", "far", "pod-3", map[string]any{"spec": map[string]any{"serviceAccountName": "robot"}})
	head := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",`
	for _, c := range []struct {
		account, body string
		code          int
		field         string
	}{
		{"robot", head + `"spec":{"expirationSeconds":599}}`, 422, "spec.expirationSeconds"},
		{"robot", head + `"spec":{"expirationSeconds":-1}}`, 422, "spec.expirationSeconds"},
		{"robot", head + `"spec":{"expirationSeconds":0}}`, 422, "spec.expirationSeconds"},
		{"robot", head + `"spec":{"expirationSeconds":4294967297}}`, 422, "spec.expirationSeconds"},
		{"robot", head + `"spec":{"expirationSeconds":"600"}}`, 400, ""},
		{"robot", head + `"spec":{"audiences":[1]}}`, 400, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"nosuch"}}}`, 404, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"nosuch"}}}`, 404, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"far"}}}`, 404, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Node","apiVersion":"v1","name":"nosuch"}}}`, 404, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"ConfigMap","apiVersion":"v1","name":"a"}}}`, 400, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"apps/v1","name":"p"}}}`, 400, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"stranger"}}}`, 400, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"nameless"}}}`, 400, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"wrong"}}}`, 409, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"s","uid":"wrong"}}}`, 409, ""},
		{"robot", head + `"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1"}}}`, 400, ""},
		{"robot", head + `"metadata":{"uid":"wrong"},"spec":{}}`, 409, ""},
		{"robot", head + `"metadata":{"name":"other"},"spec":{}}`, 422, "metadata.name"},
		{"robot", head + `"metadata":{"namespace":"default"},"spec":{}}`, 400, ""},
		{"robot", `{"apiVersion":"v1","kind":"ServiceAccount"}`, 400, ""},
		{"missing", head + `"spec":{}}`, 404, ""},
	} {
		o, err := w.request(c.account, c.body)
		assert.Nil(t, o, c.body)
		var s *meta.Status
		require.True(t, errors.As(err, &s), c.body)
		assert.Equal(t, c.code, s.Code, c.body)
		if c.field != "" {
			require.Len(t, s.Details.Causes, 1, c.body)
			assert.Equal(t, c.field, s.Details.Causes[0].Field)
		}
	}
}

func TestMaxExpirationReducesLifetime(t *testing.T) {
	w := newWorld(t, func(c *serviceaccount.Config) { c.MaxExpiration = 20 * time.Minute })
	o, err := w.request("robot", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":7200}}`)
	require.NoError(t, err)
	assert.Equal(t, int64(1200), o.Int("spec", "expirationSeconds"))
	assert.Equal(t, []string{"requested expiration of 7200 seconds shortened to 1200 seconds"}, w.warned)
}

func TestAudiencesMustIntersect(t *testing.T) {
	w := newWorld(t)
	vault := w.issue(`{"audiences":["vault","bank"]}`)
	_, auds, err := w.authenticate(vault, "x", "vault")
	require.NoError(t, err)
	assert.Equal(t, []string{"vault"}, auds)
	u, _, err := w.authenticate(vault)
	assert.Nil(t, u)
	assert.EqualError(t, err, `token audiences ["vault" "bank"] is invalid for the target audiences ["`+issuer+`"]`)
	_, _, err = w.authenticate(w.issue(`{}`), "vault")
	assert.ErrorIs(t, err, auth.ErrBadToken)
}

func TestExpiredTokenIsRefused(t *testing.T) {
	w := newWorld(t)
	token := w.issue(`{"expirationSeconds":600}`)
	w.now = w.now.Add(599 * time.Second)
	_, _, err := w.authenticate(token)
	require.NoError(t, err)
	w.now = w.now.Add(time.Second)
	_, _, err = w.authenticate(token)
	assert.ErrorIs(t, err, auth.ErrBadToken, "also if the signature is cached")
	w.now = w.now.Add(-2 * time.Hour)
	_, _, err = w.authenticate(token)
	assert.ErrorContains(t, err, "not valid yet")
}

func TestDeletedObjectsRevokeTokens(t *testing.T) {
	pod := `{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p"}}`
	secret := `{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"s"}}`
	node := `{"boundObjectRef":{"kind":"Node","apiVersion":"v1","name":"n1"}}`
	for name, c := range map[string]struct {
		spec   string
		revoke func(w *world)
		lives  bool
	}{
		"account deleted":           {`{}`, func(w *world) { w.remove("serviceaccounts", "ns", "robot") }, false},
		"account recreated":         {`{}`, func(w *world) { w.put("serviceaccounts", "ns", "robot", "sa-2", nil) }, false},
		"account terminating":       {`{}`, func(w *world) { w.terminate("serviceaccounts", "ns", "robot", w.now) }, true},
		"account terminating, long": {`{}`, func(w *world) { w.terminate("serviceaccounts", "ns", "robot", w.now.Add(-time.Hour)) }, false},
		"account of a pod":          {pod, func(w *world) { w.remove("serviceaccounts", "ns", "robot") }, false},
		"pod deleted":               {pod, func(w *world) { w.remove("pods", "ns", "p") }, false},
		"pod recreated":             {pod, func(w *world) { w.put("pods", "ns", "p", "pod-9", nil) }, false},
		"pod terminating":           {pod, func(w *world) { w.terminate("pods", "ns", "p", w.now.Add(30*time.Second)) }, true},
		"pod terminating, long":     {pod, func(w *world) { w.terminate("pods", "ns", "p", w.now.Add(-time.Hour)) }, false},
		"node of a pod":             {pod, func(w *world) { w.remove("nodes", "", "n1") }, true},
		"secret deleted":            {secret, func(w *world) { w.remove("secrets", "ns", "s") }, false},
		"secret recreated":          {secret, func(w *world) { w.put("secrets", "ns", "s", "secret-9", nil) }, false},
		"node deleted":              {node, func(w *world) { w.remove("nodes", "", "n1") }, false},
		"node made again":           {node, func(w *world) { w.put("nodes", "", "n1", "node-9", nil) }, false},
		"unrelated pod deleted":     {`{}`, func(w *world) { w.remove("pods", "ns", "p") }, true},
		"the store fails":           {`{}`, func(w *world) { w.client.Fail(errors.New("boom")) }, false},
	} {
		w := newWorld(t)
		token := w.issue(c.spec)
		_, _, err := w.authenticate(token)
		require.NoError(t, err, name)
		c.revoke(w)
		u, _, err := w.authenticate(token)
		assert.Equal(t, c.lives, err == nil, "%s: %v", name, err)
		assert.Equal(t, c.lives, u != nil, name)
	}
	w := newWorld(t, func(c *serviceaccount.Config) { c.NoLookup = true })
	token := w.issue(pod)
	w.remove("pods", "ns", "p")
	w.remove("serviceaccounts", "ns", "robot")
	_, _, err := w.authenticate(token)
	assert.NoError(t, err)
}

func TestSecretTokenRequiresSecret(t *testing.T) {
	w := newWorld(t)
	token, err := w.tokens.SecretToken("ns", "robot", "sa-1", "tok")
	require.NoError(t, err)
	_, _, err = w.authenticate(token)
	assert.ErrorContains(t, err, "not found", "the secret does not exist")
	hold := func(token string) {
		w.put("secrets", "ns", "tok", "secret-5", map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))}})
	}
	hold(token)
	u, auds, err := w.authenticate(token)
	require.NoError(t, err)
	assert.Equal(t, &auth.User{Name: "system:serviceaccount:ns:robot", UID: "sa-1",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns"}}, u)
	assert.Equal(t, []string{issuer}, auds)
	_, _, err = w.authenticate(token, "vault")
	assert.Error(t, err)
	w.now = w.now.Add(100 * 365 * 24 * time.Hour)
	_, _, err = w.authenticate(token)
	assert.NoError(t, err, "legacy tokens do not expire")
	hold("another")
	_, _, err = w.authenticate(token)
	assert.ErrorIs(t, err, auth.ErrBadToken)
}

// TestForgedTokensAreRefused checks tokens with manipulated headers, claims and
// signatures.
func TestForgedTokensAreRefused(t *testing.T) {
	w := newWorld(t)
	good := w.issue(`{}`)
	parts := strings.Split(good, ".")
	decode := func(s string) map[string]any {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(raw, &m))
		return m
	}
	encode := func(m map[string]any) string {
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	body := func(change func(map[string]any)) map[string]any {
		m := decode(parts[1])
		change(m)
		return m
	}
	sign := func(alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
		require.NoError(t, err)
		token, err := jwt.Signed(s).Claims(claims).Serialize()
		require.NoError(t, err)
		return token
	}
	same := body(func(map[string]any) {})
	strange, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(w.raw.Public())
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	private := func(change func(map[string]any)) map[string]any {
		return body(func(m map[string]any) { change(m["kubernetes.io"].(map[string]any)) })
	}
	jwk := jose.JSONWebKey{Key: strange, KeyID: "", Algorithm: "ES256"}
	embedded, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jwk}, (&jose.SignerOptions{EmbedJWK: true}))
	require.NoError(t, err)
	withKey, err := jwt.Signed(embedded).Claims(same).Serialize()
	require.NoError(t, err)

	require.NotEmpty(t, sign(jose.ES256, w.raw, same))
	_, _, err = w.authenticate(sign(jose.ES256, w.raw, same))
	require.NoError(t, err, "the right key without a key id is fine")

	for name, token := range map[string]string{
		"alg none":                 encode(map[string]any{"alg": "none"}) + "." + parts[1] + ".",
		"alg none, signature kept": encode(map[string]any{"alg": "none"}) + "." + parts[1] + "." + parts[2],
		"alg None":                 encode(map[string]any{"alg": "None"}) + "." + parts[1] + ".",
		"no alg":                   encode(map[string]any{}) + "." + parts[1] + "." + parts[2],
		"no signature":             parts[0] + "." + parts[1] + ".",
		"HMAC with the public key": sign(jose.HS256, public, same),
		"HMAC with the DER key":    sign(jose.HS256, der, same),
		"another key":              sign(jose.ES256, strange, same),
		"another algorithm":        sign(jose.RS256, rsaKey, same),
		"key in the header":        withKey,
		"unknown key id":           encode(map[string]any{"alg": "ES256", "kid": "nobody"}) + "." + parts[1] + "." + parts[2],
		"critical header":          encode(map[string]any{"alg": "ES256", "crit": []string{"x"}, "x": 1}) + "." + parts[1] + "." + parts[2],
		"changed claims":           parts[0] + "." + encode(body(func(m map[string]any) { m["sub"] = "system:serviceaccount:ns:admin" })) + "." + parts[2],
		"cut signature":            good[:len(good)-4],
		"subject is another": sign(jose.ES256, w.raw, body(func(m map[string]any) {
			m["sub"] = "system:serviceaccount:ns:admin"
		})),
		"no private claims":  sign(jose.ES256, w.raw, body(func(m map[string]any) { delete(m, "kubernetes.io") })),
		"no uid":             sign(jose.ES256, w.raw, private(func(m map[string]any) { m["serviceaccount"] = map[string]any{"name": "robot"} })),
		"claims of bad type": sign(jose.ES256, w.raw, private(func(m map[string]any) { m["serviceaccount"] = "robot" })),
		"no expiry":          sign(jose.ES256, w.raw, body(func(m map[string]any) { delete(m, "exp") })),
		"expired":            sign(jose.ES256, w.raw, body(func(m map[string]any) { m["exp"] = w.now.Unix() - 1 })),
		"not yet":            sign(jose.ES256, w.raw, body(func(m map[string]any) { m["nbf"] = w.now.Unix() + 3600 })),
		"other audience":     sign(jose.ES256, w.raw, body(func(m map[string]any) { m["aud"] = "vault" })),
		"empty audience":     sign(jose.ES256, w.raw, body(func(m map[string]any) { m["aud"] = "" })),
		"empty audiences":    sign(jose.ES256, w.raw, body(func(m map[string]any) { m["aud"] = []string{""} })),
		"legacy without secret": sign(jose.ES256, w.raw, map[string]any{"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:ns:robot",
			"kubernetes.io/serviceaccount/namespace": "ns", "kubernetes.io/serviceaccount/service-account.name": "robot",
			"kubernetes.io/serviceaccount/service-account.uid": "sa-1"}),
		"legacy with another's secret": sign(jose.ES256, w.raw, map[string]any{"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:ns:robot",
			"kubernetes.io/serviceaccount/namespace": "ns", "kubernetes.io/serviceaccount/service-account.name": "robot",
			"kubernetes.io/serviceaccount/service-account.uid": "sa-1", "kubernetes.io/serviceaccount/secret.name": "s"}),
		"legacy with modern claims": sign(jose.ES256, w.raw, body(func(m map[string]any) { m["iss"] = "kubernetes/serviceaccount" })),
	} {
		u, _, err := w.authenticate(token)
		assert.Nil(t, u, name)
		assert.ErrorIs(t, err, auth.ErrBadToken, name)
	}
	for name, token := range map[string]string{
		"other issuer": sign(jose.ES256, w.raw, body(func(m map[string]any) { m["iss"] = "https://elsewhere" })),
		"no issuer":    sign(jose.ES256, w.raw, body(func(m map[string]any) { delete(m, "iss") })),
		"no JWT":       "abcdef.0123456789abcdef",
		"JWE":          "a.b.c.d.e",
		"empty":        "",
		"bad base64":   "a.%%%.c",
		"no JSON":      "YQ.YQ.YQ",
	} {
		u, _, err := w.authenticate(token)
		assert.Nil(t, u, name)
		assert.NoError(t, err, "%s belongs to another authenticator", name)
	}
}

func TestTokensSurviveKeyRotation(t *testing.T) {
	w := newWorld(t)
	old := w.issue(`{}`)
	fresh, err := serviceaccount.GenerateKey()
	require.NoError(t, err)
	config := serviceaccount.Config{Keys: []serviceaccount.Key{fresh, w.key}, Client: w.client, Names: names.Kubernetes, Now: func() time.Time { return w.now }}
	w.tokens, err = serviceaccount.New(config)
	require.NoError(t, err)
	_, _, err = w.authenticate(old)
	assert.NoError(t, err, "the old key still verifies")
	_, _, err = w.authenticate(w.issue(`{}`))
	assert.NoError(t, err)
	config.Keys = []serviceaccount.Key{fresh}
	w.tokens, err = serviceaccount.New(config)
	require.NoError(t, err)
	_, _, err = w.authenticate(old)
	assert.ErrorIs(t, err, auth.ErrBadToken)
}

func TestAllIssuersAreAccepted(t *testing.T) {
	w := newWorld(t)
	old := w.issue(`{"audiences":["api"]}`)
	var err error
	w.tokens, err = serviceaccount.New(serviceaccount.Config{Issuers: []string{"https://new", issuer}, Audiences: []string{"api"},
		Keys: []serviceaccount.Key{w.key}, Client: w.client, Names: names.Kubernetes, Now: func() time.Time { return w.now }})
	require.NoError(t, err)
	_, _, err = w.authenticate(old)
	assert.NoError(t, err)
	parsed, err := jwt.ParseSigned(w.issue(`{}`), []jose.SignatureAlgorithm{jose.ES256})
	require.NoError(t, err)
	var c jwt.Claims
	require.NoError(t, parsed.UnsafeClaimsWithoutVerification(&c))
	assert.Equal(t, "https://new", c.Issuer)
	assert.Equal(t, jwt.Audience{"api"}, c.Audience)
}

func TestNewReportsViolations(t *testing.T) {
	_, err := serviceaccount.New(serviceaccount.Config{Issuers: []string{""}})
	for _, part := range []string{"Client is required", "empty issuer", "Keys is empty"} {
		assert.ErrorContains(t, err, part)
	}
}

func TestDiscoveryDocuments(t *testing.T) {
	w := newWorld(t)
	docs, err := w.tokens.Discovery()
	require.NoError(t, err)
	get := func(method, path string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		docs[path].ServeHTTP(rec, httptest.NewRequest(method, path, nil))
		return rec
	}
	rec := get("GET", serviceaccount.ConfigurationPath)
	assert.JSONEq(t, `{"issuer":"`+issuer+`","jwks_uri":"`+issuer+`/openid/v1/jwks","response_types_supported":["id_token"],
		"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`, rec.Body.String())
	rec = get("GET", serviceaccount.KeySetPath)
	assert.Equal(t, "application/jwk-set+json", rec.Header().Get("Content-Type"))
	var set jose.JSONWebKeySet
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &set))
	require.Len(t, set.Keys, 1)
	assert.True(t, set.Keys[0].IsPublic())
	parsed, err := jwt.ParseSigned(w.issue(`{}`), []jose.SignatureAlgorithm{jose.ES256})
	require.NoError(t, err)
	assert.NoError(t, parsed.Claims(set.Key(parsed.Headers[0].KeyID)[0], &jwt.Claims{}))
	assert.Equal(t, http.StatusMethodNotAllowed, get("POST", serviceaccount.KeySetPath).Code)

	w = newWorld(t, func(c *serviceaccount.Config) { c.Issuers = []string{"api"} })
	_, err = w.tokens.Discovery()
	assert.Error(t, err)
}

func TestParseKeysReadsPEMTypes(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	require.NoError(t, err)
	var ids []string
	for kind, der := range map[string][]byte{"PRIVATE KEY": pkcs8, "RSA PRIVATE KEY": x509.MarshalPKCS1PrivateKey(rsaKey),
		"PUBLIC KEY": public, "RSA PUBLIC KEY": x509.MarshalPKCS1PublicKey(&rsaKey.PublicKey)} {
		keys, err := serviceaccount.ParseKeys(append([]byte("text\n"), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...))
		require.NoError(t, err, kind)
		require.Len(t, keys, 1)
		assert.Equal(t, strings.Contains(kind, "PRIVATE"), keys[0].Private(), kind)
		ids = append(ids, keys[0].ID)
	}
	assert.Equal(t, []string{ids[0], ids[0], ids[0], ids[0]}, ids, "the private and the public key have the same id")
	for _, bad := range []string{"", "no PEM", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		_, err := serviceaccount.ParseKeys([]byte(bad))
		assert.Error(t, err)
	}
	_, err = serviceaccount.NewKey("text")
	assert.Error(t, err)
	_, err = serviceaccount.LoadKeys("/no/such/file")
	assert.Error(t, err)
}

func FuzzAuthenticateToken(f *testing.F) {
	key, err := serviceaccount.GenerateKey()
	require.NoError(f, err)
	tokens, err := serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, NoLookup: true, Issuers: []string{"i"}})
	require.NoError(f, err)
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.eyJpc3MiOiJpIn0.")
	f.Add("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJpIn0.AAAA")
	f.Fuzz(func(t *testing.T, token string) {
		u, _, _ := tokens.AuthenticateToken(context.Background(), token, nil)
		assert.Nil(t, u)
	})
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := serviceaccount.ParseKeys(data)
		assert.Equal(t, err == nil, len(keys) > 0)
	})
}

func BenchmarkAuthenticateToken(b *testing.B) {
	key, err := serviceaccount.GenerateKey()
	require.NoError(b, err)
	client := &testclient.Client{}
	client.Put("serviceaccounts", map[string]any{"metadata": map[string]any{"name": "robot", "namespace": "ns", "uid": "1"}})
	tokens, err := serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: client})
	require.NoError(b, err)
	o, err := tokens.TokenRequest(context.Background(), &registry.Call{Key: meta.Key{Namespace: "ns", Name: "robot"},
		Object: meta.NewObject(map[string]any{"apiVersion": "authentication.orch.io/v1", "kind": "TokenRequest", "spec": map[string]any{}})})
	require.NoError(b, err)
	token := o.String("status", "token")
	for b.Loop() {
		if _, _, err := tokens.AuthenticateToken(context.Background(), token, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleNew() {
	key, _ := serviceaccount.GenerateKey()
	client := &testclient.Client{}
	client.Put("serviceaccounts", map[string]any{"metadata": map[string]any{"name": "robot", "namespace": "ns", "uid": "1"}})
	tokens, err := serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: client})
	if err != nil {
		panic(err)
	}
	o, _ := tokens.TokenRequest(context.Background(), &registry.Call{
		Key:    meta.Key{Namespace: "ns", Name: "robot"},
		Object: meta.NewObject(map[string]any{"apiVersion": "authentication.orch.io/v1", "kind": "TokenRequest"}),
	})
	u, audiences, _ := tokens.AuthenticateToken(context.Background(), o.String("status", "token"), nil)
	fmt.Println(u.Name, audiences)
	// Output: system:serviceaccount:ns:robot [https://orch.default.svc.cluster.local]
}

func TestTokenRequestHasManagedFields(t *testing.T) {
	w := newWorld(t)
	body := meta.NewObject(map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"boundObjectRef": map[string]any{"kind": "Pod", "name": "p"}},
	})
	o, err := w.tokens.TokenRequest(context.Background(), &registry.Call{
		Key: meta.Key{Namespace: "ns", Name: "robot"}, Object: body, Names: names.Kubernetes,
		Manager: "m", Subresource: "token"})
	require.NoError(t, err)
	require.Len(t, o.List("metadata", "managedFields"), 1)
	got, err := json.Marshal(o.List("metadata", "managedFields")[0].(map[string]any)["fieldsV1"])
	require.NoError(t, err)
	assert.JSONEq(t, `{"f:metadata":{"f:labels":{".":{},"f:a":{}}},
		"f:spec":{"f:boundObjectRef":{"f:kind":{},"f:name":{}},"f:expirationSeconds":{}}}`, string(got))
}
