package apiserver

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/serving"
)

// startServer starts the server with flags and returns its address. The server stops at the end of the
// test.
func startServer(t *testing.T, args ...string) string {
	address, _ := startServerWithConfig(t, args...)
	return address
}

// startServerWithConfig is startServer; it also returns the path of the administrator's client
// configuration.
func startServerWithConfig(t *testing.T, args ...string) (address, kubeconfig string) {
	kubeconfig = filepath.Join(t.TempDir(), "admin")
	ctx, cancel := context.WithCancel(context.Background())
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Command{}.run(ctx, append(args, "--names", "kubernetes", "--data-dir", "", "--secure-port", "0",
			"--kubeconfig", kubeconfig), write)
		write.Close()
	}()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	lines := bufio.NewScanner(read)
	require.True(t, lines.Scan(), "the server did not start")
	address = strings.TrimPrefix(lines.Text(), "serving on ")
	go func() {
		for lines.Scan() { // discard the example commands
		}
	}()
	return address, kubeconfig
}

// files is a directory for files that flags name.
type files struct {
	*testing.T
	dir string
}

func (f files) put(name, content string) string {
	path := filepath.Join(f.dir, name)
	require.NoError(f, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// ask makes a request with a bearer token or a client certificate, and additional headers.
func ask(t *testing.T, cert *tls.Certificate, method, url, token, body string, headers ...string) (int, map[string]any) {
	config := &tls.Config{InsecureSkipVerify: true}
	if cert != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer := map[string]any{}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}

// testIssuer starts an OpenID Connect issuer with one key. The returned function signs tokens.
func testIssuer(t *testing.T) (*httptest.Server, func(claims map[string]any) string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	mux := http.NewServeMux()
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, s.URL, s.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	require.NoError(t, err)
	return s, func(claims map[string]any) string {
		token, err := jwt.Signed(signer).Claims(claims).Serialize()
		require.NoError(t, err)
		return token
	}
}

// TestCredentialsOfEveryMethodAreAccepted: one server with all methods of authentication accepts the credentials
// of each.
func TestCredentialsOfEveryMethodAreAccepted(t *testing.T) {
	f := files{t, t.TempDir()}
	issuer, sign := testIssuer(t)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			APIVersion string
			Spec       struct{ Token string }
		}
		json.NewDecoder(r.Body).Decode(&q)
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"TokenReview","status":{"authenticated":%t,"user":{"username":"hooked"}}}`,
			q.APIVersion, q.Spec.Token == "hook-token")
	}))
	t.Cleanup(hook.Close)
	ca, err := serving.NewAuthority("ca")
	require.NoError(t, err)
	proxyCA, err := serving.NewAuthority("proxy")
	require.NoError(t, err)
	client := func(from *serving.Authority, name string, groups ...string) *tls.Certificate {
		cert, key, err := from.Client(name, groups...)
		require.NoError(t, err)
		pair, err := tls.X509KeyPair(cert, key)
		require.NoError(t, err)
		return &pair
	}
	auditLog := filepath.Join(f.dir, "audit.log")
	server := startServer(t,
		"--token-auth-file", f.put("users.csv", "admin-token,admin,1,system:masters\n"),
		"--client-ca-file", f.put("ca.pem", string(ca.PEM())),
		"--enable-bootstrap-token-auth",
		"--oidc-issuer-url", issuer.URL, "--oidc-client-id", "app", "--oidc-username-claim", "email", "--oidc-groups-claim", "groups",
		"--oidc-groups-prefix", "oidc:", "--oidc-required-claim", "hd=example.com",
		"--oidc-ca-file", f.put("issuer.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}))),
		"--authentication-token-webhook-config-file", f.put("hook.yaml", "clusters: [{name: c, cluster: {server: '"+hook.URL+"'}}]"),
		"--requestheader-client-ca-file", f.put("proxy.pem", string(proxyCA.PEM())), "--requestheader-allowed-names", "front",
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
		"--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--audit-policy-file", f.put("policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"),
		"--audit-log-path", auditLog,
	)
	secret := `{"type":"bootstrap.kubernetes.io/token","metadata":{"name":"bootstrap-token-abcdef"},
		"stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"true"}}`
	code, answer := ask(t, nil, "POST", server+"/api/v1/namespaces/kube-system/secrets", "admin-token", secret)
	require.Equal(t, 201, code, answer)
	accounts := server + "/api/v1/namespaces/default/serviceaccounts"
	code, answer = ask(t, nil, "POST", accounts, "admin-token", `{"metadata":{"name":"robot"}}`)
	require.Equal(t, 201, code, answer)
	code, answer = ask(t, nil, "POST", accounts+"/robot/token", "admin-token", `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{}}`)
	require.Equal(t, 201, code, answer)
	robot := answer["status"].(map[string]any)["token"].(string)
	id := func(hd string) string {
		return sign(map[string]any{"iss": issuer.URL, "aud": "app", "sub": "1", "email": "zoe@example.com", "groups": []string{"devs"},
			"hd": hd, "exp": time.Now().Add(time.Hour).Unix()})
	}
	for _, c := range []struct {
		name, token string
		cert        *tls.Certificate
		headers     []string
		code        int
		want        string
	}{
		{"token file", "admin-token", nil, nil, 201, "admin system:masters,system:authenticated"},
		{"certificate", "", client(ca, "bob", "ops"), nil, 201, "bob ops,system:authenticated"},
		{"bootstrap token", "abcdef.0123456789abcdef", nil, nil, 201, "system:bootstrap:abcdef system:bootstrappers,system:authenticated"},
		{"service account", robot, nil, nil, 201, "system:serviceaccount:default:robot system:serviceaccounts,system:serviceaccounts:default,system:authenticated"},
		{"OpenID Connect", id("example.com"), nil, nil, 201, "zoe@example.com oidc:devs,system:authenticated"},
		{"webhook", "hook-token", nil, nil, 201, "hooked system:authenticated"},
		{"proxy", "", client(proxyCA, "front"), []string{"X-Remote-User", "yan", "X-Remote-Group", "g"}, 201, "yan g,system:authenticated"},
		{"impersonation", "admin-token", nil, []string{"Impersonate-User", "xia"}, 201, "xia system:authenticated"},
		{"impersonation without right", "hook-token", nil, []string{"Impersonate-User", "xia"}, 403, ""},
		{"required claim", id("other.com"), nil, nil, 401, ""},
		{"bad bootstrap token", "abcdef.0123456789abcdee", nil, nil, 401, ""},
		{"bad token", "nobody's", nil, nil, 401, ""},
		{"cut token", robot[:len(robot)-5], nil, nil, 401, ""},
		{"proxy of another name", "", client(proxyCA, "back"), []string{"X-Remote-User", "admin"}, 401, ""},
		{"headers without the proxy", "", nil, []string{"X-Remote-User", "admin", "X-Remote-Group", "system:masters"}, 403, ""},
		{"nobody", "", nil, nil, 403, ""},
	} {
		code, answer := ask(t, c.cert, "POST", server+"/apis/authentication.k8s.io/v1/selfsubjectreviews", c.token, "{}", c.headers...)
		require.Equal(t, c.code, code, "%s: %v", c.name, answer)
		if c.want == "" {
			continue
		}
		info := answer["status"].(map[string]any)["userInfo"].(map[string]any)
		assert.Equal(t, c.want, fmt.Sprint(info["username"], " ", strings.ReplaceAll(strings.Trim(fmt.Sprint(info["groups"]), "[]"), " ", ",")), c.name)
	}
	code, answer = ask(t, nil, "GET", server+"/openid/v1/jwks", robot, "")
	assert.Equal(t, 200, code, answer)
	assert.Eventually(t, func() bool {
		log, err := os.ReadFile(auditLog)
		return err == nil && strings.Contains(string(log), `"username":"zoe@example.com"`) && strings.Contains(string(log), `"impersonatedUser":{"username":"xia"`)
	}, time.Minute, 10*time.Millisecond)
}

func TestAnonymousOff(t *testing.T) {
	server := startServer(t, "--anonymous-auth=false")
	code, answer := ask(t, nil, "GET", server+"/version", "", "")
	assert.Equal(t, 401, code, answer)
}

const publicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtj6Wcal64IqyjOzmx2d9ihay5Ezr
IAmwUbp69afHQftrhZztwi3P6LNli319xPQgJ0CLrFhU3HtTycyKUPh3lA==
-----END PUBLIC KEY-----
`

func TestFlagFaults(t *testing.T) {
	f := files{t, t.TempDir()}
	for _, args := range [][]string{
		{"--token-auth-file", "/no/such"},
		{"--token-auth-file", f.put("bad.csv", "a,b\n")},
		{"--client-ca-file", f.put("empty.pem", "")},
		{"--oidc-issuer-url", "http://x", "--oidc-client-id", "a"},
		{"--oidc-issuer-url", "https://x"},
		{"--oidc-required-claim", "x"},
		{"--service-account-key-file", "/no/such"},
		{"--service-account-signing-key-file", f.put("public.pem", publicKey)},
		{"--requestheader-client-ca-file", f.put("empty2.pem", "")},
		{"--proxy-client-cert-file", "/no/such", "--proxy-client-key-file", "/no/such"},
		{"--authentication-token-webhook-config-file", "/no/such"},
		{"--audit-log-path", "/tmp/x"},
		{"--audit-policy-file", f.put("bad.yaml", "rules: []")},
		{"--admission-control-config-file", f.put("admission.yaml", "kind: Other")},
	} {
		err := Command{}.run(context.Background(), append(args, "--data-dir", "", "--secure-port", "0", "--kubeconfig", filepath.Join(f.dir, "k")), io.Discard)
		assert.Error(t, err, args)
	}
}
