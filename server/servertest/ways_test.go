package servertest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// lamp is a Go type for the typed client.
type lamp struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Lit             bool `json:"lit,omitempty"`
}

const lamps = "/apis/example.com/v1/lamps"

var lampKind = registry.Definition[lamp]{Group: "example.com", Version: "v1", Kind: "Lamp", Scope: registry.Cluster}

func withLamps(b *server.Builder) { b.Register(registry.Of(lampKind)) }

// bearer is a RoundTripper that adds a token.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestEveryClientMeetsFaults sends a request through each kind of client of a server, and checks that faults
// and recorders see it, and that it works after Restart.
func TestEveryClientMeetsFaults(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, withLamps)
	jane := s.As("jane")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	listener := &http.Client{Transport: bearer{jane.Token()}}
	conn := s.Conn(auth.User{Name: "jane"})
	secure, overTLS := byKubeconfig(t, jane)
	ways := map[string]struct {
		client *http.Client
		host   string
		user   string
	}{
		"Conn":           {&http.Client{Transport: conn.Transport}, s.Host(), "jane"},
		"Client":         {s.Client(), s.Host(), "system:anonymous"},
		"Transport":      {&http.Client{Transport: s.Transport()}, s.Host(), "system:anonymous"},
		"URL":            {listener, s.URL(), "jane"},
		"User.Client":    {jane.Client(), jane.Host(), "jane"},
		"User.Transport": {&http.Client{Transport: jane.Transport()}, jane.Host(), "jane"},
		"Kubeconfig":     {overTLS, secure, "jane"},
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			s.Restart()
		}
		for name, way := range ways {
			f := s.Fail(servertest.On("list", "lamps").By(way.user).Times(1).With(servertest.Unavailable))
			r := s.Record()
			assert.Equal(t, "503", outcome(t, way.client, "GET", way.host+lamps, ""), name)
			assert.Equal(t, "200", outcome(t, way.client, "GET", way.host+lamps, ""), name)
			assert.Equal(t, way.user+" list lamps.example.com → 200\n", r.String(), name)
			r.Stop()
			f.Stop()
		}
	}
}

// byKubeconfig returns a client for the kubeconfig of a user.
func byKubeconfig(t *testing.T, u *servertest.User) (base string, c *http.Client) {
	t.Helper()
	config, err := kubeconfig.Load(u.Kubeconfig())
	require.NoError(t, err)
	remote, err := config.Current()
	require.NoError(t, err)
	c = &http.Client{Transport: remote.Transport()}
	t.Cleanup(c.CloseIdleConnections)
	return strings.TrimRight(remote.URL.String(), "/"), c
}

// TestConnActsAsUser checks that the server handles requests of a Conn as the given user everywhere.
func TestConnActsAsUser(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.RBAC, withLamps)
	admin := auth.User{Name: "admin", Groups: []string{auth.Masters}}
	conn := s.Conn(admin)
	conn.Manager = "tester"
	objects := client.Of[lamp](conn, registry.Of(lampKind))
	s.Fail(servertest.On("create", "lamps").By("admin").Named("a").Times(1).With(servertest.Conflict))

	_, err := objects.Create(t.Context(), &lamp{ObjectMeta: meta.ObjectMeta{Name: "a"}})
	assert.Equal(t, meta.ReasonConflict, meta.ReasonOf(err))
	_, err = objects.Create(t.Context(), &lamp{ObjectMeta: meta.ObjectMeta{Name: "a"}})
	require.NoError(t, err)
	_, err = client.Of[lamp](s.Conn(auth.User{Name: "jane"}), registry.Of(lampKind)).Get(t.Context(), "a")
	assert.Equal(t, meta.ReasonForbidden, meta.ReasonOf(err))
	_, err = client.Of[lamp](s.Conn(auth.User{}), registry.Of(lampKind)).Get(t.Context(), "a")
	assert.Equal(t, meta.ReasonUnauthorized, meta.ReasonOf(err))

	r, err := http.NewRequestWithContext(t.Context(), "GET", s.Host()+lamps+"/a", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+s.As("jane").Token())
	res, err := conn.Transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, 200, res.StatusCode, "the user of Conn counts, not the token")

	s.Crash()
	_, err = objects.Get(t.Context(), "a")
	assert.ErrorContains(t, err, "connection refused")
	s.Restart()
	got, err := objects.Get(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, "a", got.Name)

	frozen := s.Fail(servertest.On("read", "lamps").With(s.StaleReads()))
	_, err = objects.Create(t.Context(), &lamp{ObjectMeta: meta.ObjectMeta{Name: "b"}})
	require.NoError(t, err)
	_, err = objects.Get(t.Context(), "b")
	assert.Equal(t, meta.ReasonNotFound, meta.ReasonOf(err))
	frozen.Stop()
}

// serversOwn are the methods of server.Server that servertest.Server promotes, each with the reason why
// faults and recorders do not apply to it.
var serversOwn = map[string]string{
	"Objects":        "documented as the server's own",
	"Metrics":        "no requests",
	"Run":            "no requests",
	"Running":        "no requests",
	"EndWatches":     "no requests",
	"Shutdown":       "no requests",
	"Drain":          "no requests",
	"Migrate":        "no requests",
	"SetFlowControl": "no requests",
}

// TestNoMethodBypassesFaults checks that each method of server.Server is either replaced by servertest.Server
// or in serversOwn.
func TestNoMethodBypassesFaults(t *testing.T) {
	replaced := map[string]bool{}
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok && star.X.(*ast.Ident).Name == "Server" {
					replaced[f.Name.Name] = true
				}
			}
		}
	}
	of := reflect.TypeFor[*server.Server]()
	for i := range of.NumMethod() {
		name := of.Method(i).Name
		_, own := serversOwn[name]
		assert.True(t, replaced[name] != own, "%s must be replaced by servertest.Server or be in serversOwn", name)
	}
}
