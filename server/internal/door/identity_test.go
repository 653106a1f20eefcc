package door_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// testAuthority signs client certificates.
type testAuthority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newTestAuthority(t *testing.T) *testAuthority {
	a := &testAuthority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *testAuthority) sign(tmpl *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	tmpl.SerialNumber = big.NewInt(time.Now().UnixNano())
	tmpl.NotBefore, tmpl.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), signer)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key
}

func (a *testAuthority) client(name string, groups ...string) *tls.Certificate {
	cert, key := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *testAuthority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// TestCredentialsDetermineUser requests over TLS the user that results from each combination of credentials,
// including combinations that could be mistaken for others.
func TestCredentialsDetermineUser(t *testing.T) {
	t.Parallel()
	users, proxies, strangers := newTestAuthority(t), newTestAuthority(t), newTestAuthority(t)
	proxy, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{Roots: proxies.pool(), AllowedNames: []string{"front"},
		UserHeaders: []string{"X-Remote-User"}, GroupHeaders: []string{"X-Remote-Group"}, ExtraPrefixes: []string{"X-Remote-Extra-"}})
	require.NoError(t, err)
	file, err := tokenfile.Parse(strings.NewReader("alice-token,alice,1,devs\n"))
	require.NoError(t, err)
	s := servertest.New(t, func(b *server.Builder) {
		b.Authenticators = []auth.Authenticator{proxy, clientcert.New(users.pool()), file, auth.AnonymousAccess}
		b.Register(review.Identity(auth.Union(file), nil)...)
	})
	web := httptest.NewUnstartedServer(s.Server)
	web.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	web.StartTLS()
	defer web.Close()

	bob, front := users.client("bob", "ops"), proxies.client("front")
	token := []string{"Authorization", "Bearer alice-token"}
	admin := []string{"X-Remote-User", "admin", "X-Remote-Group", "system:masters"}
	for _, c := range []struct {
		name    string
		cert    *tls.Certificate
		headers []string
		want    string // user and groups; empty: 401
	}{
		{"nothing", nil, nil, "system:anonymous system:unauthenticated"},
		{"token", nil, token, "alice devs,system:authenticated"},
		{"certificate", bob, nil, "bob ops,system:authenticated"},
		{"certificate and token: the first method decides", bob, token, "bob ops,system:authenticated"},
		{"certificate and a bad token", bob, []string{"Authorization", "Bearer bad"}, "bob ops,system:authenticated"},
		{"bad token", nil, []string{"Authorization", "Bearer bad"}, ""},
		{"stranger's certificate", strangers.client("bob"), nil, ""},
		{"stranger's certificate with a good token", strangers.client("bob"), token, "alice devs,system:authenticated"},
		{"proxy", front, []string{"X-Remote-User", "zoe", "X-Remote-Group", "a", "X-Remote-Group", "b"}, "zoe a,b,system:authenticated"},
		{"proxy for nobody", front, nil, ""},
		{"proxy with another name", proxies.client("back"), admin, ""},
		{"proxy's headers without a certificate", nil, admin, "system:anonymous system:unauthenticated"},
		{"proxy's headers with a token", nil, append(admin, token...), "alice devs,system:authenticated"},
		{"proxy's headers with a user's certificate", bob, admin, "bob ops,system:authenticated"},
		{"proxy's headers with a stranger's certificate", strangers.client("front"), admin, ""},
		{"proxy's headers with a user named as the proxy", users.client("front"), admin, "front system:authenticated"},
		{"two spaces", nil, []string{"Authorization", "Bearer  alice-token"}, "system:anonymous system:unauthenticated"},
		{"basic", nil, []string{"Authorization", "Basic YWxpY2U6YWxpY2U="}, "system:anonymous system:unauthenticated"},
		{"impersonation by a proxy's user", front, []string{"X-Remote-User", "zoe", "Impersonate-User", "yan"}, "yan system:authenticated"},
	} {
		config := web.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		if c.cert != nil {
			// GetClientCertificate instead of Certificates: otherwise Go would withhold
			// certificates of authorities that the server's list does not name.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.cert, nil }
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		r, err := http.NewRequest("POST", web.URL+"/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Add(c.headers[i], c.headers[i+1])
		}
		resp, err := client.Do(r)
		require.NoError(t, err, c.name)
		var answer struct {
			Status any
			Reason string
		}
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
		require.NoError(t, resp.Body.Close())
		client.CloseIdleConnections()
		if c.want == "" {
			assert.Equal(t, 401, resp.StatusCode, c.name)
			assert.Equal(t, "Unauthorized", answer.Reason, c.name)
			continue
		}
		require.Equal(t, 201, resp.StatusCode, c.name)
		info := answer.Status.(map[string]any)["userInfo"].(map[string]any)
		var groups []string
		for _, g := range info["groups"].([]any) {
			groups = append(groups, g.(string))
		}
		assert.Equal(t, c.want, info["username"].(string)+" "+strings.Join(groups, ","), c.name)
	}
}
