package oidc_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/oidc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is an OpenID Connect issuer over TLS.
type issuer struct {
	t      testing.TB
	server *httptest.Server
	mu     sync.Mutex               // guards the fields below
	keys   map[string]any           // private keys by id
	calls  map[string]int           // number of requests by path
	down   bool                     // answers 503
	more   []any                    // additional entries of the key set
	change func(doc map[string]any) // changes the configuration document
	now    time.Time
}

func newIssuer(t testing.TB) *issuer {
	i := &issuer{t: t, keys: map[string]any{}, calls: map[string]int{}, now: time.Unix(1_700_000_000, 0)}
	i.server = httptest.NewTLSServer(i)
	t.Cleanup(i.server.Close)
	i.add("k1")
	return i
}

func (i *issuer) add(id string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(i.t, err)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[id] = key
}

func (i *issuer) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

func (i *issuer) asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls[path]
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls[r.URL.Path]++
	if i.down {
		w.WriteHeader(503)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		doc := map[string]any{"issuer": i.server.URL, "jwks_uri": i.server.URL + "/keys"}
		if i.change != nil {
			i.change(doc)
		}
		json.NewEncoder(w).Encode(doc)
	case "/keys":
		set := map[string]any{"keys": []any{map[string]any{"kty": "new-kind", "kid": "x"}}}
		for id, key := range i.keys {
			if k, ok := key.(*rsa.PrivateKey); ok {
				set["keys"] = append(set["keys"].([]any), jose.JSONWebKey{Key: k.Public(), KeyID: id, Algorithm: "RS256", Use: "sig"})
			}
		}
		set["keys"] = append(set["keys"].([]any), i.more...)
		json.NewEncoder(w).Encode(set)
	default:
		w.WriteHeader(404)
	}
}

func (i *issuer) roots() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(i.server.Certificate())
	return p
}

func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	require.NoError(t, err)
	token, err := jwt.Signed(s).Claims(claims).Serialize()
	require.NoError(t, err)
	return token
}

// claims returns the claims of a valid token, changed by pairs of name and value. A
// nil value removes the claim.
func (i *issuer) claims(kv ...any) map[string]any {
	c := map[string]any{"iss": i.server.URL, "aud": "app", "sub": "1234", "email": "alice@example.com", "exp": i.now.Add(time.Hour).Unix()}
	for n := 0; n < len(kv); n += 2 {
		if kv[n+1] == nil {
			delete(c, kv[n].(string))
			continue
		}
		c[kv[n].(string)] = kv[n+1]
	}
	return c
}

func (i *issuer) token(kv ...any) string {
	return sign(i.t, jose.RS256, i.keys["k1"], "k1", i.claims(kv...))
}

func (i *issuer) open(change func(*oidc.Config)) *oidc.Authenticator {
	c := oidc.Config{IssuerURL: i.server.URL, ClientID: "app", Roots: i.roots(), Now: func() time.Time { return i.now }}
	if change != nil {
		change(&c)
	}
	a, err := oidc.New(c)
	require.NoError(i.t, err)
	i.t.Cleanup(a.Close)
	return a
}

func authenticate(a *oidc.Authenticator, token string) (*auth.User, error) {
	u, _, err := a.AuthenticateToken(context.Background(), token, nil)
	return u, err
}

func TestClaimsMakeUser(t *testing.T) {
	i := newIssuer(t)
	url := i.server.URL
	for _, c := range []struct {
		name   string
		config func(*oidc.Config)
		claims []any
		want   *auth.User // nil: refused
	}{
		{"defaults", nil, nil, &auth.User{Name: url + "#1234"}},
		{"no prefix", func(c *oidc.Config) { c.UsernamePrefix = "-" }, nil, &auth.User{Name: "1234"}},
		{"prefix", func(c *oidc.Config) { c.UsernamePrefix = "oidc:" }, nil, &auth.User{Name: "oidc:1234"}},
		{"another claim", func(c *oidc.Config) { c.UsernameClaim = "name" }, []any{"name", "al"}, &auth.User{Name: url + "#al"}},
		{"email", func(c *oidc.Config) { c.UsernameClaim = "email" }, nil, &auth.User{Name: "alice@example.com"}},
		{"email with prefix", func(c *oidc.Config) { c.UsernameClaim, c.UsernamePrefix = "email", "p:" }, nil, &auth.User{Name: "p:alice@example.com"}},
		{"email verified", func(c *oidc.Config) { c.UsernameClaim = "email" }, []any{"email_verified", true}, &auth.User{Name: "alice@example.com"}},
		{"email not verified", func(c *oidc.Config) { c.UsernameClaim = "email" }, []any{"email_verified", false}, nil},
		{"email verified in words", func(c *oidc.Config) { c.UsernameClaim = "email" }, []any{"email_verified", "true"}, nil},
		{"not verified is of no matter", nil, []any{"email_verified", false}, &auth.User{Name: url + "#1234"}},
		{"claim missing", func(c *oidc.Config) { c.UsernameClaim = "name" }, nil, nil},
		{"claim no string", func(c *oidc.Config) { c.UsernameClaim = "name" }, []any{"name", 1}, nil},
		{"claim empty", func(c *oidc.Config) { c.UsernameClaim = "name" }, []any{"name", ""}, nil},
		{"groups", func(c *oidc.Config) { c.GroupsClaim, c.GroupsPrefix = "groups", "g:" }, []any{"groups", []string{"a", "b"}},
			&auth.User{Name: url + "#1234", Groups: []string{"g:a", "g:b"}}},
		{"one group", func(c *oidc.Config) { c.GroupsClaim = "groups" }, []any{"groups", "a"}, &auth.User{Name: url + "#1234", Groups: []string{"a"}}},
		{"no groups", func(c *oidc.Config) { c.GroupsClaim = "groups" }, nil, &auth.User{Name: url + "#1234"}},
		{"groups not asked for", nil, []any{"groups", "a"}, &auth.User{Name: url + "#1234"}},
		{"groups no strings", func(c *oidc.Config) { c.GroupsClaim = "groups" }, []any{"groups", []any{"a", 1}}, nil},
		{"groups an object", func(c *oidc.Config) { c.GroupsClaim = "groups" }, []any{"groups", map[string]any{}}, nil},
		{"too many groups", func(c *oidc.Config) { c.GroupsClaim = "groups" }, []any{"groups", make([]string, 5000)}, nil},
		{"required", func(c *oidc.Config) { c.RequiredClaims = map[string]string{"hd": "x", "t": "y"} }, []any{"hd", "x", "t", "y"}, &auth.User{Name: url + "#1234"}},
		{"required missing", func(c *oidc.Config) { c.RequiredClaims = map[string]string{"hd": "x"} }, nil, nil},
		{"required other", func(c *oidc.Config) { c.RequiredClaims = map[string]string{"hd": "x"} }, []any{"hd", "z"}, nil},
		{"required no string", func(c *oidc.Config) { c.RequiredClaims = map[string]string{"hd": "1"} }, []any{"hd", 1}, nil},
		{"several audiences", nil, []any{"aud", []string{"x", "app"}}, &auth.User{Name: url + "#1234"}},
		{"other audience", nil, []any{"aud", "other"}, nil},
		{"no audience", nil, []any{"aud", nil}, nil},
		{"expired", nil, []any{"exp", i.now.Unix() - 1}, nil},
		{"no expiry", nil, []any{"exp", nil}, nil},
		{"not yet", nil, []any{"nbf", i.now.Unix() + 3600}, nil},
	} {
		u, err := authenticate(i.open(c.config), i.token(c.claims...))
		assert.Equal(t, c.want, u, c.name)
		if c.want == nil {
			assert.ErrorIs(t, err, auth.ErrBadToken, c.name)
		} else {
			assert.NoError(t, err, c.name)
		}
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	i := newIssuer(t)
	a := i.open(nil)
	good := i.token()
	_, err := authenticate(a, good)
	require.NoError(t, err)
	parts := strings.Split(good, ".")
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	strange, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(i.keys["k1"].(*rsa.PrivateKey).Public())
	require.NoError(t, err)
	for name, token := range map[string]string{
		"alg none":                 encode(`{"alg":"none"}`) + "." + parts[1] + ".",
		"alg none, signature kept": encode(`{"alg":"none"}`) + "." + parts[1] + "." + parts[2],
		"HMAC with the public key": sign(t, jose.HS256, der, "k1", i.claims()),
		"another key":              sign(t, jose.RS256, strange, "k1", i.claims()),
		"another key, no id":       sign(t, jose.RS256, strange, "", i.claims()),
		"another key, unknown id":  sign(t, jose.RS256, strange, "k9", i.claims()),
		"algorithm not allowed":    sign(t, jose.RS512, i.keys["k1"], "k1", i.claims()),
		"another kind of key":      sign(t, jose.ES256, curve, "k1", i.claims()),
		"changed":                  parts[0] + "." + encode(`{"iss":"`+i.server.URL+`","aud":"app","sub":"admin","exp":9999999999}`) + "." + parts[2],
		"no signature":             parts[0] + "." + parts[1] + ".",
	} {
		u, err := authenticate(a, token)
		assert.Nil(t, u, name)
		assert.ErrorIs(t, err, auth.ErrBadToken, name)
	}
	for name, token := range map[string]string{
		"other issuer": i.token("iss", "https://elsewhere"), "issuer with a slash": i.token("iss", i.server.URL+"/"),
		"no issuer": i.token("iss", nil), "no JWT": "abc", "empty": "", "bad": "a.!.b",
	} {
		u, err := authenticate(a, token)
		assert.Nil(t, u, name)
		assert.NoError(t, err, name)
	}
}

func TestUnknownKeyCausesFetch(t *testing.T) {
	i := newIssuer(t)
	a := i.open(nil)
	assert.Zero(t, i.asked("/.well-known/openid-configuration"), "New does not connect")
	old := i.token()
	for range 5 {
		_, err := authenticate(a, old)
		require.NoError(t, err)
	}
	assert.Equal(t, 1, i.asked("/.well-known/openid-configuration"))
	assert.Equal(t, 1, i.asked("/keys"), "not once per request")

	i.now = i.now.Add(time.Minute)
	i.add("k2")
	fresh := sign(t, jose.RS256, i.keys["k2"], "k2", i.claims())
	_, err := authenticate(a, fresh)
	require.NoError(t, err, "an unknown key causes a fetch")
	assert.Equal(t, 2, i.asked("/keys"))
	_, err = authenticate(a, old)
	require.NoError(t, err)

	i.now = i.now.Add(time.Minute)
	i.set(func() { delete(i.keys, "k1") })
	strange, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for n := range 20 {
		_, err = authenticate(a, sign(t, jose.RS256, strange, fmt.Sprint("no", n), i.claims()))
		assert.ErrorIs(t, err, auth.ErrBadToken)
	}
	assert.Equal(t, 3, i.asked("/keys"), "many unknown keys cause a single fetch")
	_, err = authenticate(a, old)
	assert.ErrorIs(t, err, auth.ErrBadToken, "the key was removed")
	_, err = authenticate(a, fresh)
	assert.NoError(t, err)
}

func TestUnavailableIssuerIsRetried(t *testing.T) {
	i := newIssuer(t)
	i.set(func() { i.down = true })
	a := i.open(nil)
	token := i.token()
	for range 3 {
		u, err := authenticate(a, token)
		assert.Nil(t, u)
		assert.Error(t, err)
		assert.NotErrorIs(t, err, auth.ErrBadToken)
	}
	assert.Equal(t, 1, i.asked("/.well-known/openid-configuration"), "no second fetch before the retry interval")
	i.set(func() { i.down = false })
	i.now = i.now.Add(10 * time.Second)
	_, err := authenticate(a, token)
	require.NoError(t, err)

	i.set(func() { i.down = true })
	i.now = i.now.Add(time.Minute)
	_, err = authenticate(a, token)
	assert.NoError(t, err, "known keys remain valid")
	i.add("k2")
	_, err = authenticate(a, sign(t, jose.RS256, i.keys["k2"], "k2", i.claims()))
	assert.Error(t, err)
	i.set(func() { i.down = false })
	i.now = i.now.Add(10 * time.Second)
	_, err = authenticate(a, sign(t, jose.RS256, i.keys["k2"], "k2", i.claims()))
	assert.NoError(t, err)
}

func TestInvalidIssuersAreRefused(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"another issuer":    func(d map[string]any) { d["issuer"] = "https://elsewhere" },
		"keys without TLS":  func(d map[string]any) { d["jwks_uri"] = strings.Replace(d["jwks_uri"].(string), "https", "http", 1) },
		"no keys":           func(d map[string]any) { delete(d, "jwks_uri") },
		"keys not found":    func(d map[string]any) { d["jwks_uri"] = d["jwks_uri"].(string) + "/x" },
		"endless document":  func(d map[string]any) { d["x"] = strings.Repeat("x", 5<<20) },
		"issuer is no text": func(d map[string]any) { d["issuer"] = 1 },
	} {
		i := newIssuer(t)
		i.change = change
		u, err := authenticate(i.open(nil), i.token())
		assert.Nil(t, u, name)
		assert.Error(t, err, name)
	}
	i := newIssuer(t)
	_, err := authenticate(i.open(func(c *oidc.Config) { c.Roots = x509.NewCertPool() }), i.token())
	assert.ErrorContains(t, err, "certificate")
}

// TestHostileKeySetsAreBounded checks issuers with hundreds of keys and with a
// private key whose validation takes minutes.
func TestHostileKeySetsAreBounded(t *testing.T) {
	i := newIssuer(t)
	number := func(bits int) string {
		return base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, bits/8))
	}
	i.more = []any{map[string]any{"kty": "RSA", "kid": "k2", "n": number(4096), "e": "AQAB", "d": number(4096), "p": number(4096), "q": "AQ"}}
	_, err := authenticate(i.open(nil), i.token())
	assert.NoError(t, err)
	i.set(func() { i.more = slices.Repeat(i.more, 300) })
	_, err = authenticate(i.open(nil), i.token())
	assert.ErrorContains(t, err, "more than 256 keys")
}

// TestKeysForEncryptionVerifyNothing checks that a key set may contain keys of another use.
func TestKeysForEncryptionVerifyNothing(t *testing.T) {
	i := newIssuer(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for use, good := range map[string]bool{"enc": false, "sig": true, "": true} {
		i.more = []any{jose.JSONWebKey{Key: key.Public(), KeyID: "k2", Use: use}}
		u, err := authenticate(i.open(nil), sign(t, jose.RS256, key, "k2", i.claims()))
		assert.Equal(t, good, u != nil, "%q: %v", use, err)
	}
}

func TestTheNumberOfGroupsIsBounded(t *testing.T) {
	i := newIssuer(t)
	a := i.open(func(c *oidc.Config) { c.GroupsClaim = "groups" })
	u, err := authenticate(a, i.token("groups", make([]string, 4096)))
	require.NoError(t, err)
	assert.Len(t, u.Groups, 4096)
	_, err = authenticate(a, i.token("groups", make([]string, 4097)))
	assert.ErrorIs(t, err, auth.ErrBadToken)
}

// TestKnownTokensExpire checks a token that was accepted before and after its end.
func TestKnownTokensExpire(t *testing.T) {
	i := newIssuer(t)
	a := i.open(nil)
	token := i.token("exp", i.now.Add(time.Minute).Unix())
	for _, seconds := range []int{0, 59, 61, 600} {
		i.now = time.Unix(1_700_000_000+int64(seconds), 0)
		_, err := authenticate(a, token)
		assert.Equal(t, seconds > 60, err != nil, "after %d seconds: %v", seconds, err)
	}
}

func TestNewReportsViolations(t *testing.T) {
	_, err := oidc.New(oidc.Config{IssuerURL: "http://x", Algorithms: []string{"HS256"}, RequiredClaims: map[string]string{"": "x"}})
	for _, part := range []string{"must be an https URL", "client id is empty", `"HS256"`, "without a name"} {
		assert.ErrorContains(t, err, part)
	}
	for _, u := range []string{"", "x", "https://", "https://a?b", "https://a#b", "https://u:p@a", "ftp://a"} {
		_, err := oidc.New(oidc.Config{IssuerURL: u, ClientID: "x"})
		assert.Error(t, err, u)
	}
}

func TestConcurrentTokensShareFetch(t *testing.T) {
	i := newIssuer(t)
	a := i.open(nil)
	token := i.token()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := authenticate(a, token)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Equal(t, 1, i.asked("/.well-known/openid-configuration"))
	assert.Equal(t, 1, i.asked("/keys"))
}

func FuzzAuthenticateToken(f *testing.F) {
	a, err := oidc.New(oidc.Config{IssuerURL: "https://issuer.invalid", ClientID: "app"})
	require.NoError(f, err)
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.eyJpc3MiOiJpIn0.")
	f.Fuzz(func(t *testing.T, token string) {
		u, _, _ := a.AuthenticateToken(context.Background(), token, nil)
		assert.Nil(t, u)
	})
}

func BenchmarkAuthenticateToken(b *testing.B) {
	i := newIssuer(b)
	a := i.open(nil)
	token := i.token()
	for b.Loop() {
		if _, err := authenticate(a, token); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleNew() {
	a, err := oidc.New(oidc.Config{IssuerURL: "https://accounts.example.com", ClientID: "app", UsernameClaim: "email", GroupsClaim: "groups", GroupsPrefix: "oidc:"})
	if err != nil {
		panic(err)
	}
	u, err := a.Authenticate(httptest.NewRequest("GET", "/", nil))
	fmt.Println(u, err)
	// Output: <nil> <nil>
}
