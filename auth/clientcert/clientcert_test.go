package clientcert_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/auth/internal/verifier"
	"orch.io/controlplane/internal/testcerts"
)

func over(certs ...*x509.Certificate) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: certs}
	return r
}

func TestAuthenticateVerifiesCertificates(t *testing.T) {
	ca, other := testcerts.New(t, "ca", nil), testcerts.New(t, "ca", nil)
	middle := testcerts.New(t, "middle", ca)
	alice := pkix.Name{CommonName: "alice", Organization: []string{"ops", "devs"}}
	client := x509.ExtKeyUsageClientAuth
	plain := httptest.NewRequest("GET", "/", nil)
	for _, c := range []struct {
		name  string
		r     *http.Request
		want  *auth.User
		fails bool
	}{
		{"no TLS", plain, nil, false},
		{"no certificate", over(), nil, false},
		{"good", over(ca.Issue(t, alice, client, time.Hour).Leaf), &auth.User{Name: "alice", Groups: alice.Organization}, false},
		{"intermediate", over(middle.Issue(t, alice, client, time.Hour).Leaf, middle.Cert), &auth.User{Name: "alice", Groups: alice.Organization}, false},
		{"intermediate left out", over(middle.Issue(t, alice, client, time.Hour).Leaf), nil, true},
		{"other authority of the same name", over(other.Issue(t, alice, client, time.Hour).Leaf), nil, true},
		{"brings its own authority", over(other.Issue(t, alice, client, time.Hour).Leaf, other.Cert), nil, true},
		{"server usage", over(ca.Issue(t, alice, x509.ExtKeyUsageServerAuth, time.Hour).Leaf), nil, true},
		{"expired", over(ca.Issue(t, alice, client, -time.Minute).Leaf), nil, true},
		{"no common name", over(ca.Issue(t, pkix.Name{Organization: []string{"system:masters"}}, client, time.Hour).Leaf), nil, false},
	} {
		u, err := clientcert.New(ca.Pool()).Authenticate(c.r)
		assert.Equal(t, c.want, u, c.name)
		assert.Equal(t, c.fails, err != nil, "%s: %v", c.name, err)
	}
}

// TestWithoutRootsNoCertificateIsAccepted checks that without configured CA certificates no certificate is accepted, not
// even a certificate that the CA certificates of the host verify.
func TestWithoutRootsNoCertificateIsAccepted(t *testing.T) {
	ca := testcerts.New(t, "ca", nil)
	host := filepath.Join(t.TempDir(), "host.pem")
	require.NoError(t, os.WriteFile(host, ca.PEM(), 0o600))
	t.Setenv("SSL_CERT_FILE", host)
	leaf := ca.Issue(t, pkix.Name{CommonName: "alice"}, x509.ExtKeyUsageClientAuth, time.Hour).Leaf
	for _, roots := range []*x509.CertPool{nil, x509.NewCertPool()} {
		u, err := clientcert.New(roots).Authenticate(over(leaf))
		assert.Nil(t, u)
		assert.Error(t, err)
	}
}

func TestVerifierRemembers(t *testing.T) {
	ca, other := testcerts.New(t, "ca", nil), testcerts.New(t, "ca", nil)
	now := time.Now()
	v := verifier.New(ca.Pool(), func() time.Time { return now })
	leaf := ca.Issue(t, pkix.Name{CommonName: "alice"}, x509.ExtKeyUsageClientAuth, 5*time.Minute).Leaf
	forged := other.Issue(t, pkix.Name{CommonName: "alice"}, x509.ExtKeyUsageClientAuth, 5*time.Minute).Leaf
	for range 3 {
		got, err := v.Verify(over(leaf))
		require.NoError(t, err)
		assert.Same(t, leaf, got)
		_, err = v.Verify(over(forged))
		assert.Error(t, err, "a forged certificate is refused each time")
		_, err = v.Verify(over(forged, leaf))
		assert.Error(t, err)
	}
	now = now.Add(5 * time.Minute)
	_, err := v.Verify(over(leaf))
	assert.Error(t, err, "not longer than it is valid")
}

// TestVerifierRemembersWholeChains checks that a certificate that was accepted with its intermediate is not accepted
// without it.
func TestVerifierRemembersWholeChains(t *testing.T) {
	ca := testcerts.New(t, "ca", nil)
	middle := testcerts.New(t, "middle", ca)
	v := verifier.New(ca.Pool(), nil)
	leaf := middle.Issue(t, pkix.Name{CommonName: "alice"}, x509.ExtKeyUsageClientAuth, time.Hour).Leaf
	_, err := v.Verify(over(leaf, middle.Cert))
	require.NoError(t, err)
	_, err = v.Verify(over(leaf))
	assert.Error(t, err)
}

func BenchmarkAuthenticate(b *testing.B) {
	ca := testcerts.New(b, "ca", nil)
	a := clientcert.New(ca.Pool())
	r := over(ca.Issue(b, pkix.Name{CommonName: "alice"}, x509.ExtKeyUsageClientAuth, time.Hour).Leaf)
	for b.Loop() {
		if _, err := a.Authenticate(r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestParseBundle(t *testing.T) {
	ca := testcerts.New(t, "ca", nil)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw})
	pool, err := clientcert.ParseBundle(block)
	require.NoError(t, err)
	assert.True(t, pool.Equal(ca.Pool()))
	_, err = clientcert.ParseBundle([]byte("no certificate"))
	assert.Error(t, err)
}

func ExampleNew() {
	a := clientcert.New(x509.NewCertPool())
	u, err := a.Authenticate(httptest.NewRequest("GET", "/", nil))
	fmt.Println(u, err)
	// Output: <nil> <nil>
}
