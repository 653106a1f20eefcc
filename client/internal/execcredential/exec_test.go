package execcredential_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/client/internal/execcredential"
	"orch.io/controlplane/internal/testcerts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is the plugin. It counts its runs in a file of its directory, records its input there, and
// prints the file answer.
const script = `
printf x >> "$PLUGIN_DIR/runs"
printf '%s%s' "$KUBERNETES_EXEC_INFO" "$ORCH_EXEC_INFO" > "$PLUGIN_DIR/info"
cat > "$PLUGIN_DIR/stdin"
printf '%s%s' "$*" "$EXTRA" > "$PLUGIN_DIR/args"
printf talking >&2
cat "$PLUGIN_DIR/answer" || exit 3
if grep -q hang "$PLUGIN_DIR/answer"; then exec sleep 3600; fi
`

type plugin struct {
	*testing.T
	dir string
	now time.Time
}

func newPlugin(t *testing.T) *plugin { return &plugin{t, t.TempDir(), time.Unix(1_700_000_000, 0)} }

func (p *plugin) answer(version string, status map[string]any) {
	data, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/" + version, "status": status})
	require.NoError(p, err)
	p.print(string(data))
}

func (p *plugin) print(s string) {
	require.NoError(p, os.WriteFile(filepath.Join(p.dir, "answer"), []byte(s), 0o600))
}

func (p *plugin) file(name string) string {
	data, _ := os.ReadFile(filepath.Join(p.dir, name))
	return string(data)
}

func (p *plugin) runs() int { return len(p.file("runs")) }

func (p *plugin) config(change func(*execcredential.Config)) execcredential.Config {
	path := filepath.Join(p.dir, "plugin.sh")
	require.NoError(p, os.WriteFile(path, []byte(script), 0o600))
	c := execcredential.Config{Command: "/bin/sh", Args: []string{path}, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: execcredential.Never,
		Env: []execcredential.EnvVar{{Name: "PLUGIN_DIR", Value: p.dir}}, Now: func() time.Time { return p.now }}
	if change != nil {
		change(&c)
	}
	return c
}

// client returns a client of a server that responds with the credentials and the address of the
// request.
func (p *plugin) client(change func(*execcredential.Config)) *client {
	c := &client{T: p.T, code: 200}
	c.server = httptest.NewUnstartedServer(c)
	ca := testcerts.New(p, "ca", nil)
	c.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert,
		Certificates: []tls.Certificate{ca.Issue(p, pkix.Name{CommonName: "server"}, x509.ExtKeyUsageServerAuth, time.Hour)}}
	c.server.StartTLS()
	p.Cleanup(c.server.Close)
	s, err := execcredential.New(p.config(change))
	require.NoError(p, err)
	c.http = &http.Client{Transport: s.Transport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}})}
	p.Cleanup(c.http.CloseIdleConnections)
	return c
}

type client struct {
	*testing.T
	server *httptest.Server
	http   *http.Client
	code   int
}

func (c *client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(c.code)
	name := ""
	if len(r.TLS.PeerCertificates) > 0 {
		name = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	fmt.Fprintf(w, "%s|%s|%s", r.Header.Get("Authorization"), name, r.RemoteAddr)
}

func (c *client) get() (auth, cert, from string) {
	resp, err := c.http.Get(c.server.URL)
	require.NoError(c, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(c, err)
	parts := strings.Split(string(data), "|")
	return parts[0], parts[1], parts[2]
}

func TestTokenIsCachedUntil401(t *testing.T) {
	p := newPlugin(t)
	p.answer("v1", map[string]any{"token": "abc"})
	var stderr bytes.Buffer
	c := p.client(func(c *execcredential.Config) {
		c.Args, c.Stderr = append(c.Args, "get", "it"), &stderr
		c.Env = append(c.Env, execcredential.EnvVar{Name: "EXTRA", Value: "!"})
	})
	for range 3 {
		auth, _, _ := c.get()
		assert.Equal(t, "Bearer abc", auth)
	}
	assert.Equal(t, 1, p.runs(), "without an expiry the token is kept until a 401")
	assert.Equal(t, "get it!", p.file("args"))
	assert.Equal(t, "talking", stderr.String())
	assert.JSONEq(t, `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`, p.file("info"))

	p.answer("v1", map[string]any{"token": "def"})
	c.code = 401
	auth, _, _ := c.get()
	assert.Equal(t, "Bearer abc", auth)
	c.code = 200
	auth, _, _ = c.get()
	assert.Equal(t, "Bearer def", auth, "after a 401")
	assert.Equal(t, 2, p.runs())

	r, err := http.NewRequest("GET", c.server.URL, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer mine")
	resp, err := c.http.Do(r)
	require.NoError(t, err)
	data, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	assert.Contains(t, string(data), "Bearer mine|")
}

func TestExpiredTokenIsRenewed(t *testing.T) {
	p := newPlugin(t)
	p.answer("v1", map[string]any{"token": "abc", "expirationTimestamp": p.now.Add(time.Minute).UTC().Format(time.RFC3339)})
	c := p.client(nil)
	c.get()
	p.now = p.now.Add(59 * time.Second)
	c.get()
	assert.Equal(t, 1, p.runs())
	p.now = p.now.Add(time.Second)
	c.get()
	assert.Equal(t, 2, p.runs())
}

func TestCertificateOfPluginIsUsed(t *testing.T) {
	p := newPlugin(t)
	ca := testcerts.New(t, "clients", nil)
	give := func(name string) {
		cert, key := testcerts.Encode(t, ca.Issue(t, pkix.Name{CommonName: name}, x509.ExtKeyUsageClientAuth, time.Hour))
		p.answer("v1", map[string]any{"clientCertificateData": string(cert), "clientKeyData": string(key)})
	}
	give("alice")
	c := p.client(nil)
	_, cert, first := c.get()
	assert.Equal(t, "alice", cert)
	_, _, second := c.get()
	assert.Equal(t, first, second, "requests share a connection")

	c.code = 401
	c.get()
	c.code = 200
	_, cert, third := c.get()
	assert.Equal(t, "alice", cert)
	assert.Equal(t, first, third, "the program ran again and printed the same certificate")
	assert.Equal(t, 2, p.runs())

	give("bob")
	c.code = 401
	c.get()
	c.code = 200
	_, cert, fourth := c.get()
	assert.Equal(t, "bob", cert)
	assert.NotEqual(t, first, fourth, "a new handshake")
}

func TestConcurrentRequestsShareRun(t *testing.T) {
	p := newPlugin(t)
	p.answer("v1", map[string]any{"token": "abc"})
	c := p.client(nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { c.get() })
	}
	wg.Wait()
	assert.Equal(t, 1, p.runs(), "concurrent requests share a run")
}

func TestInteractiveModeDecidesStdin(t *testing.T) {
	for _, c := range []struct {
		mode     string
		terminal bool
		version  string
		want     string // interactive, stdin
		fails    bool
	}{
		{execcredential.Never, true, "v1", "false ", false},
		{execcredential.Never, false, "v1", "false ", false},
		{execcredential.IfAvailable, true, "v1", "true typed", false},
		{execcredential.IfAvailable, false, "v1", "false ", false},
		{execcredential.Always, true, "v1", "true typed", false},
		{execcredential.Always, false, "v1", "", true},
		{"", true, "v1beta1", "true typed", false},
	} {
		p := newPlugin(t)
		p.answer(c.version, map[string]any{"token": "abc"})
		cl := p.client(func(cfg *execcredential.Config) {
			cfg.APIVersion = "client.authentication.k8s.io/" + c.version
			cfg.InteractiveMode = c.mode
			if c.terminal {
				cfg.Terminal = strings.NewReader("typed")
			}
		})
		resp, err := cl.http.Get(cl.server.URL)
		assert.Equal(t, c.fails, err != nil, "%+v: %v", c, err)
		if err != nil {
			assert.Zero(t, p.runs())
			continue
		}
		resp.Body.Close()
		var info struct{ Spec struct{ Interactive bool } }
		require.NoError(t, json.Unmarshal([]byte(p.file("info")), &info))
		assert.Equal(t, c.want, fmt.Sprint(info.Spec.Interactive, " ", p.file("stdin")))
	}
}

func TestClusterInfo(t *testing.T) {
	p := newPlugin(t)
	p.print(`{"kind":"ExecCredential","apiVersion":"client.authentication.orch.io/v1","status":{"token":"abc"}}`)
	cluster := &execcredential.Cluster{Server: "https://a", CertificateAuthorityData: []byte("ca"), Config: map[string]any{"k": []any{"v"}}}
	for _, provide := range []bool{false, true} {
		c := p.client(func(c *execcredential.Config) {
			c.APIVersion, c.ProvideClusterInfo, c.Cluster = "client.authentication.orch.io/v1", provide, cluster
		})
		c.get()
		want := `{"interactive":false}`
		if provide {
			want = `{"interactive":false,"cluster":{"server":"https://a","certificate-authority-data":"Y2E=","config":{"k":["v"]}}}`
		}
		assert.JSONEq(t, `{"kind":"ExecCredential","apiVersion":"client.authentication.orch.io/v1","spec":`+want+`}`, p.file("info"))
	}
}

func TestInvalidOutputFails(t *testing.T) {
	ca := testcerts.New(t, "clients", nil)
	cert, key := testcerts.Encode(t, ca.Issue(t, pkix.Name{CommonName: "a"}, x509.ExtKeyUsageClientAuth, time.Hour))
	_, other := testcerts.Encode(t, ca.Issue(t, pkix.Name{CommonName: "b"}, x509.ExtKeyUsageClientAuth, time.Hour))
	v1 := `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",`
	quote := func(b []byte) string { s, _ := json.Marshal(string(b)); return string(s) }
	for in, want := range map[string]string{
		``:                               "not an ExecCredential",
		`token`:                          "not an ExecCredential",
		v1 + `"status":{"token":"a"}} x`: "not an ExecCredential",
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"a"}}`: "instead of",
		`{"kind":"Pod","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"a"}}`:                 "instead of",
		v1 + `"spec":{}}`:   "no status",
		v1 + `"status":{}}`: "neither",
		v1 + `"status":{"token":"a","expirationTimestamp":"soon"}}`:                                         "not an ExecCredential",
		v1 + `"status":{"token":"a\nb"}}`:                                                                   "a header cannot have",
		v1 + `"status":{"clientCertificateData":` + quote(cert) + `}}`:                                      "without its key",
		v1 + `"status":{"token":"a","clientKeyData":` + quote(key) + `}}`:                                   "without its",
		v1 + `"status":{"clientCertificateData":"x","clientKeyData":"y"}}`:                                  "do not match",
		v1 + `"status":{"clientCertificateData":` + quote(cert) + `,"clientKeyData":` + quote(other) + `}}`: "do not match",
		v1 + `"status":{"token":"` + strings.Repeat("a", 2<<20) + `"}}`:                                     "more than",
	} {
		p := newPlugin(t)
		p.print(in)
		c := p.client(nil)
		_, err := c.http.Get(c.server.URL)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "PRIVATE KEY")
	}
}

func TestFailedRuns(t *testing.T) {
	p := newPlugin(t)
	c := p.client(nil)
	_, err := c.http.Get(c.server.URL)
	assert.ErrorContains(t, err, "exit status 3")
	_, err = c.http.Get(c.server.URL)
	assert.Error(t, err)
	assert.Equal(t, 2, p.runs(), "a failure is not cached")

	for _, command := range []string{"no-such-program-anywhere", "./no-such-program"} {
		c = p.client(func(c *execcredential.Config) {
			c.Command, c.Dir, c.InstallHint = command, p.dir, "get it from the shop"
		})
		_, err = c.http.Get(c.server.URL)
		assert.ErrorContains(t, err, "not installed")
		assert.ErrorContains(t, err, "get it from the shop")
	}

	p.print("hang")
	c = p.client(func(c *execcredential.Config) { c.Timeout = 300 * time.Millisecond })
	_, err = c.http.Get(c.server.URL)
	assert.Error(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", c.server.URL, strings.NewReader("body"))
	require.NoError(t, err)
	_, err = c.http.Do(r)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestRelativeCommand(t *testing.T) {
	p := newPlugin(t)
	p.answer("v1", map[string]any{"token": "abc"})
	require.NoError(t, os.Mkdir(filepath.Join(p.dir, "bin"), 0o700))
	require.NoError(t, os.Symlink("/bin/sh", filepath.Join(p.dir, "bin", "plugin")))
	c := p.client(func(c *execcredential.Config) { c.Command, c.Dir = "bin/plugin", p.dir })
	auth, _, _ := c.get()
	assert.Equal(t, "Bearer abc", auth)
}

func TestNewReportsAllErrors(t *testing.T) {
	_, err := execcredential.New(execcredential.Config{APIVersion: "client.authentication.k8s.io/v1alpha1", InteractiveMode: "Sometimes",
		Env: []execcredential.EnvVar{{Name: "A=B"}}, ProvideClusterInfo: true})
	for _, part := range []string{"no command", "unknown apiVersion", "unknown interactiveMode", "invalid environment variable", "without a cluster"} {
		assert.ErrorContains(t, err, part)
	}
	_, err = execcredential.New(execcredential.Config{Command: "x", APIVersion: "client.authentication.k8s.io/v1"})
	assert.ErrorContains(t, err, "required in v1")
	_, err = execcredential.New(execcredential.Config{Command: "x", APIVersion: "client.authentication.orch.io/v1beta1"})
	assert.NoError(t, err)
}

func ExampleNew() {
	s, err := execcredential.New(execcredential.Config{
		Command: "get-token", APIVersion: "client.authentication.orch.io/v1", InteractiveMode: execcredential.Never,
		InstallHint: "get-token comes with the toolbox",
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: s.Transport(&http.Transport{})}
	_, err = client.Get("https://127.0.0.1:6443/version")
	fmt.Println(strings.Contains(err.Error(), "get-token comes with the toolbox"))
	// Output: true
}
