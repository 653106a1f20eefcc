package clientcert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/clientcert"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string, parent *authority) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer := &authority{tmpl, key}
	if parent != nil {
		signer = parent
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, signer.cert, key.Public(), signer.key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func (a *authority) leaf(t testing.TB, subject pkix.Name, usage x509.ExtKeyUsage, end time.Duration) *x509.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(end),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

func over(certs ...*x509.Certificate) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: certs}
	return r
}

func TestAuthenticate(t *testing.T) {
	ca, other := newAuthority(t, "ca", nil), newAuthority(t, "ca", nil)
	middle := newAuthority(t, "middle", ca)
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
		{"good", over(ca.leaf(t, alice, client, time.Hour)), &auth.User{Name: "alice", Groups: alice.Organization}, false},
		{"intermediate", over(middle.leaf(t, alice, client, time.Hour), middle.cert), &auth.User{Name: "alice", Groups: alice.Organization}, false},
		{"intermediate left out", over(middle.leaf(t, alice, client, time.Hour)), nil, true},
		{"other authority of the same name", over(other.leaf(t, alice, client, time.Hour)), nil, true},
		{"brings its own authority", over(other.leaf(t, alice, client, time.Hour), other.cert), nil, true},
		{"server usage", over(ca.leaf(t, alice, x509.ExtKeyUsageServerAuth, time.Hour)), nil, true},
		{"expired", over(ca.leaf(t, alice, client, -time.Minute)), nil, true},
		{"no common name", over(ca.leaf(t, pkix.Name{Organization: []string{"system:masters"}}, client, time.Hour)), nil, false},
	} {
		u, err := clientcert.New(ca.pool()).Authenticate(c.r)
		assert.Equal(t, c.want, u, c.name)
		assert.Equal(t, c.fails, err != nil, "%s: %v", c.name, err)
	}
}

func TestParseBundle(t *testing.T) {
	ca := newAuthority(t, "ca", nil)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	pool, err := clientcert.ParseBundle(block)
	require.NoError(t, err)
	assert.True(t, pool.Equal(ca.pool()))
	_, err = clientcert.ParseBundle([]byte("no certificate"))
	assert.Error(t, err)
}

func ExampleNew() {
	a := clientcert.New(x509.NewCertPool())
	u, err := a.Authenticate(httptest.NewRequest("GET", "/", nil))
	fmt.Println(u, err)
	// Output: <nil> <nil>
}
