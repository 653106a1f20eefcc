package servertest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/inprocess"
	"orch.io/controlplane/server/internal/impersonate"
)

// Host returns the base URL for clients that use the Transport of the server or of a user.
func (s *Server) Host() string { return "http://in-process" }

// Transport returns a RoundTripper that calls the server in process, without a socket and without
// credentials. It continues to work after Crash and Restart.
func (s *Server) Transport() http.RoundTripper { return s.transport("") }

// Client returns an HTTP client that uses Transport.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// Conn returns an in-process connection as the given user for the typed clients of package client, like Conn
// of server.Server. Its requests pass faults and recorders, and it continues to work after Crash and Restart.
func (s *Server) Conn(user auth.User) client.Conn {
	user.Groups, user.Extra = slices.Clone(user.Groups), maps.Clone(user.Extra)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.front.serve(w, r, &user) })
	return client.Conn{Names: s.Server.Conn(user).Names, Transport: transport{front: s.front, next: inprocess.Transport(h)}}
}

func (s *Server) transport(token string) http.RoundTripper {
	return transport{front: s.front, next: inprocess.Transport(s.front), token: token}
}

// URL returns the base URL of the server on a loopback socket, which the first call opens. It is plain HTTP.
// For TLS see User.Kubeconfig.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plain == nil {
		s.plain = httptest.NewServer(s.front)
	}
	return s.plain.URL
}

// tls returns the server's TLS socket, and opens it on the first call.
func (s *Server) tls() *httptest.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secure == nil {
		s.secure = httptest.NewUnstartedServer(s.front)
		s.secure.EnableHTTP2 = true
		s.secure.StartTLS()
	}
	return s.secure
}

// User gives access to a server as a user.
type User struct {
	s           *Server
	name, token string
}

// As returns access to the server as a user, with a new bearer token. The server authenticates and authorizes
// the user's requests like all other requests. The group auth.Masters has all rights, also with RBAC. A service
// account, named system:serviceaccount:NAMESPACE:NAME, has its standard groups if no groups are given.
func (s *Server) As(name string, groups ...string) *User {
	if namespace, _, ok := auth.SplitServiceAccount(name); ok && len(groups) == 0 {
		groups = auth.ServiceAccountGroups(namespace)
	}
	return &User{s: s, name: name, token: s.users.add(&auth.User{Name: name, Groups: groups})}
}

// Host returns the base URL for clients that use Transport.
func (u *User) Host() string { return u.s.Host() }

// Transport returns a RoundTripper that calls the server in process with the token of the user. A request
// that has an Authorization header keeps it.
func (u *User) Transport() http.RoundTripper { return u.s.transport(u.token) }

// Client returns an HTTP client that uses Transport.
func (u *User) Client() *http.Client { return &http.Client{Transport: u.Transport()} }

// Token returns the bearer token of the user, for clients of URL.
func (u *User) Token() string { return u.token }

// Kubeconfig returns the path of a kubeconfig file for programs such as kubectl. It has the address of a
// loopback socket with TLS, which the first call opens, the CA certificate and the token of the user. The
// file is deleted with the test.
func (u *User) Kubeconfig() string {
	u.s.t.Helper()
	socket := u.s.tls()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: socket.Certificate().Raw})
	file := filepath.Join(u.s.t.TempDir(), "kubeconfig")
	err := os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: servertest
clusters:
- name: servertest
  cluster: {server: %q, certificate-authority-data: %s}
contexts:
- name: servertest
  context: {cluster: servertest, user: %q}
users:
- name: %[3]q
  user: {token: %s}
`, socket.URL, base64.StdEncoding.EncodeToString(ca), u.name, u.token), 0o600)
	if err != nil {
		u.s.t.Fatalf("writing kubeconfig: %v", err)
	}
	return file
}

// transport is the in-process RoundTripper of a user.
type transport struct {
	front *front
	next  http.RoundTripper
	token string // "": none
}

// RoundTrip implements http.RoundTripper. It returns a connection refused error if the server has crashed.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.front != nil && t.front.isDown() {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, &net.OpError{Op: "dial", Net: "in-process", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if t.token != "" && r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.next.RoundTrip(r)
}

// users maps tokens to the users of As.
type users struct {
	mu      sync.RWMutex // guards byToken
	byToken map[string]*auth.User
}

func (u *users) add(user *auth.User) (token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	token = rand.Text()
	u.byToken[token] = user
	return token
}

// Authenticate implements auth.Authenticator.
func (u *users) Authenticate(r *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(u, r)
}

// AuthenticateToken implements auth.TokenAuthenticator.
func (u *users) AuthenticateToken(_ context.Context, token string, _ []string) (*auth.User, []string, error) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.byToken[token], nil, nil
}

// callers records the user of each call.
type callers struct{ *auth.UnionAuthenticator }

// Authenticate implements auth.Authenticator.
func (a *callers) Authenticate(r *http.Request) (*auth.User, error) {
	c, ok := r.Context().Value(callKey{}).(*call)
	user, err := a.find(r, c)
	if ok && user != nil {
		c.identified(user.Name, r.Header.Get(impersonate.UserHeader))
	}
	return user, err
}

// find returns the user of the connection if the call has one, else authenticates the request.
func (a *callers) find(r *http.Request, c *call) (*auth.User, error) {
	switch {
	case c == nil || c.as == nil:
		return a.UnionAuthenticator.Authenticate(r)
	case c.as.Name == "":
		return nil, nil
	}
	user := *c.as
	return &user, nil
}
