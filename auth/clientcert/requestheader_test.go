package clientcert_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/internal/testcerts"
)

func request(cert *x509.Certificate, kv ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(kv); i += 2 {
		r.Header.Add(kv[i], kv[i+1])
	}
	if cert != nil {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	}
	return r
}

func TestRequestHeaderAuthenticate(t *testing.T) {
	ca, other := testcerts.New(t, "proxy-ca", nil), testcerts.New(t, "proxy-ca", nil)
	client := x509.ExtKeyUsageClientAuth
	front := ca.Issue(t, pkix.Name{CommonName: "front"}, client, time.Hour).Leaf
	back := ca.Issue(t, pkix.Name{CommonName: "back"}, client, time.Hour).Leaf
	forged := other.Issue(t, pkix.Name{CommonName: "front"}, client, time.Hour).Leaf
	server := ca.Issue(t, pkix.Name{CommonName: "front"}, x509.ExtKeyUsageServerAuth, time.Hour).Leaf
	expired := ca.Issue(t, pkix.Name{CommonName: "front"}, client, -time.Hour).Leaf
	a, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{
		Roots: ca.Pool(), AllowedNames: []string{"front"}, UserHeaders: []string{"X-Remote-User", "x-user"},
		UIDHeaders: []string{"X-Remote-Uid"}, GroupHeaders: []string{"X-Remote-Group", "X-Team"}, ExtraPrefixes: []string{"x-remote-extra-"},
	})
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		r     *http.Request
		want  *auth.User
		fails bool
	}{
		{"user", request(front, "X-Remote-User", "alice"), &auth.User{Name: "alice"}, false},
		{"any case", request(front, "x-rEMOTE-uSER", "alice"), &auth.User{Name: "alice"}, false},
		{"second header", request(front, "X-Remote-User", " ", "X-User", "bob"), &auth.User{Name: "bob"}, false},
		{"first header wins", request(front, "X-Remote-User", "alice", "X-User", "bob"), &auth.User{Name: "alice"}, false},
		{"all", request(front, "X-Remote-User", "alice", "X-Remote-Uid", "7", "X-Remote-Group", "a", "X-Remote-Group", "b", "X-Team", "c",
			"X-Remote-Extra-Acme.com%2Fproject", "p1", "X-Remote-Extra-Acme.com%2Fproject", "p2", "X-Remote-Extra-Scopes", "s", "X-Remote-Extra-Bad%zz", "v"),
			&auth.User{Name: "alice", UID: "7", Groups: []string{"a", "b", "c"},
				Extra: map[string][]string{"acme.com/project": {"p1", "p2"}, "scopes": {"s"}, "bad%zz": {"v"}}}, false},
		{"certificate and no user", request(front, "X-Remote-Group", "a"), nil, false},
		{"headers without TLS", request(nil, "X-Remote-User", "admin", "X-Remote-Group", "system:masters"), nil, false},
		{"another authority", request(forged, "X-Remote-User", "admin"), nil, true},
		{"name not allowed", request(back, "X-Remote-User", "admin"), nil, true},
		{"server certificate", request(server, "X-Remote-User", "admin"), nil, true},
		{"expired certificate", request(expired, "X-Remote-User", "admin"), nil, true},
	} {
		u, err := a.Authenticate(c.r)
		assert.Equal(t, c.want, u, c.name)
		assert.Equal(t, c.fails, err != nil, "%s: %v", c.name, err)
	}
	flood := request(front, "X-Remote-User", "alice")
	for range 10_001 {
		flood.Header.Add("X-Remote-Group", "g")
	}
	_, err = a.Authenticate(flood)
	assert.Error(t, err)
	open, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{Roots: ca.Pool(), UserHeaders: []string{"X-Remote-User"}})
	require.NoError(t, err)
	u, err := open.Authenticate(request(back, "X-Remote-User", "alice", "X-Remote-Group", "system:masters"))
	require.NoError(t, err)
	assert.Equal(t, &auth.User{Name: "alice"}, u, "any proxy name is accepted, and headers that are not listed are ignored")
}

func TestNewRequestHeaderErrors(t *testing.T) {
	_, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{})
	assert.ErrorContains(t, err, "Roots is required")
	assert.ErrorContains(t, err, "UserHeaders is required")
	_, err = clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{AllowedNames: []string{"front"}, UserHeaders: []string{"X-User"}})
	assert.ErrorContains(t, err, "Roots is required", "an allowed name does not replace the certificate authorities")
	_, err = clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{Roots: x509.NewCertPool(), UserHeaders: []string{"X-User"}, ExtraPrefixes: []string{" "}})
	assert.ErrorContains(t, err, "empty header name", "an empty prefix would match every header")
}

func TestRequestHeaderStrip(t *testing.T) {
	a, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{Roots: x509.NewCertPool(), UserHeaders: []string{"X-Remote-User"},
		UIDHeaders: []string{"X-Remote-Uid"}, GroupHeaders: []string{"X-Remote-Group"}, ExtraPrefixes: []string{"X-Remote-Extra-"}})
	require.NoError(t, err)
	h := request(nil, "X-Remote-User", "a", "X-Remote-Uid", "7", "X-Remote-Group", "b", "X-Remote-Extra-C", "d", "Accept", "e").Header
	a.Strip(h)
	assert.Equal(t, http.Header{"Accept": {"e"}}, h)
}

func FuzzRequestHeader(f *testing.F) {
	ca := testcerts.New(f, "proxy-ca", nil)
	front := ca.Issue(f, pkix.Name{CommonName: "front"}, x509.ExtKeyUsageClientAuth, time.Hour).Leaf
	a, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{Roots: ca.Pool(), UserHeaders: []string{"X-User"}, ExtraPrefixes: []string{"X-Extra-"}})
	require.NoError(f, err)
	f.Add("X-Extra-A%2fb", "c", "u")
	f.Add("X-Extra-%", "", "")
	f.Fuzz(func(t *testing.T, name, value, user string) {
		r := request(nil)
		r.Header[name] = []string{value}
		r.Header["X-User"] = []string{user}
		u, err := a.Authenticate(r)
		assert.Nil(t, u, "no certificate, no user")
		assert.NoError(t, err)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{front}}
		u, err = a.Authenticate(r)
		assert.NoError(t, err)
		if u != nil {
			assert.NotEmpty(t, u.Name)
		}
	})
}

func ExampleNewRequestHeader() {
	a, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{Roots: x509.NewCertPool(), UserHeaders: []string{"X-Remote-User"}})
	if err != nil {
		panic(err)
	}
	// Without the proxy's certificate the header is ignored.
	u, err := a.Authenticate(request(nil, "X-Remote-User", "admin"))
	fmt.Println(u, err)
	// Output: <nil> <nil>
}
