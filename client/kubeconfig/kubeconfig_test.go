package kubeconfig_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/internal/testcerts"
	"orch.io/controlplane/internal/webhookclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// remote starts a TLS server that requests client certificates.
func remote(t *testing.T, h http.HandlerFunc) (*httptest.Server, *testcerts.Authority) {
	ca := testcerts.New(t, "ca", nil)
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{ca.Issue(t, pkix.Name{CommonName: "server"}, x509.ExtKeyUsageServerAuth, time.Hour)},
		ClientAuth:   tls.RequestClientCert,
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, ca
}

func TestCredentialsAreSent(t *testing.T) {
	s, ca := remote(t, func(w http.ResponseWriter, r *http.Request) {
		who := ""
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s|%s|%s|%s", who, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), body)
	})
	dir := t.TempDir()
	cert, key := testcerts.Encode(t, ca.Issue(t, pkix.Name{CommonName: "me"}, x509.ExtKeyUsageClientAuth, time.Hour))
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	write("ca.pem", ca.PEM())
	write("cert.pem", cert)
	write("key.pem", key)
	write("token", []byte("from-file\n"))
	b64 := base64.StdEncoding.EncodeToString
	for name, c := range map[string]struct{ cluster, user, want string }{
		"nothing":      {"certificate-authority: ca.pem", "{}", "||application/json|hello"},
		"files":        {"certificate-authority: ca.pem", "{client-certificate: cert.pem, client-key: key.pem}", "me||application/json|hello"},
		"data":         {"certificate-authority-data: " + b64(ca.PEM()), "{client-certificate-data: " + b64(cert) + ", client-key-data: " + b64(key) + "}", "me||application/json|hello"},
		"token":        {"certificate-authority: ca.pem", "{token: abc}", "|Bearer abc|application/json|hello"},
		"token file":   {"certificate-authority: ca.pem", "{tokenFile: token}", "|Bearer from-file|application/json|hello"},
		"basic":        {"certificate-authority: ca.pem", "{username: u, password: p}", "|Basic dTpw|application/json|hello"},
		"server name":  {"{certificate-authority: ca.pem, tls-server-name: localhost}", "{}", "||application/json|hello"},
		"insecure":     {"insecure-skip-tls-verify: true", "{}", "||application/json|hello"},
		"wrong name":   {"{certificate-authority: ca.pem, tls-server-name: elsewhere}", "{}", ""},
		"no authority": {"{}", "{}", ""},
	} {
		cluster := c.cluster
		if cluster[0] != '{' {
			cluster = "{" + cluster + "}"
		}
		write("config", []byte(fmt.Sprintf(`
apiVersion: v1
kind: Config
preferences: {}
clusters: [{name: c, cluster: {server: other.example}}, {name: d, cluster: %s, unknown: 1}]
users: [{name: u, user: %s}]
contexts: [{name: x, context: {cluster: d, user: u, namespace: n}}, {name: y, context: {cluster: c}}]
current-context: x
`, "{server: '"+s.URL+"', "+cluster[1:], c.user)))
		f, err := kubeconfig.Load(filepath.Join(dir, "config"))
		require.NoError(t, err, name)
		r, err := f.Current()
		require.NoError(t, err, name)
		caller := webhookclient.NewCaller(r)
		got, err := caller.Post(context.Background(), []byte("hello"))
		assert.Equal(t, c.want, string(got), "%s: %v", name, err)
		assert.Equal(t, c.want == "", err != nil, name)
		caller.Close()
	}
}

func TestParseSelectsCluster(t *testing.T) {
	for in, want := range map[string]string{
		`clusters: [{name: c, cluster: {server: "https://a"}}]`:                                                                                     "https://a",
		`clusters: [{name: c, cluster: {server: "https://a"}}, {name: d, cluster: {server: "https://b"}}]`:                                          "",
		`{clusters: [{name: c, cluster: {server: "https://a"}}], contexts: [{name: x, context: {cluster: c}}]}`:                                     "https://a",
		`{clusters: [{name: c, cluster: {server: "https://a"}}], contexts: [{name: x, context: {cluster: d}}]}`:                                     "",
		`{clusters: [{name: c, cluster: {server: "https://a"}}], contexts: [{name: x, context: {cluster: c, user: u}}]}`:                            "",
		`{clusters: [{name: c, cluster: {server: "https://a"}}], contexts: [{name: x, context: {cluster: c}}], current-context: y}`:                 "",
		`clusters: [{name: c, cluster: {server: "ftp://a"}}]`:                                                                                       "",
		`clusters: [{name: c, cluster: {server: "a"}}]`:                                                                                             "",
		`clusters: [{name: c, cluster: {server: "https://u:p@a"}}]`:                                                                                 "",
		`clusters: [{name: c, cluster: {server: "https://a", certificate-authority: /no/such}}]`:                                                    "",
		`clusters: [{name: c, cluster: {server: "https://a", certificate-authority-data: YQ==}}]`:                                                   "",
		`{clusters: [{name: c, cluster: {server: "https://a"}}], users: [{name: u, user: {client-key-data: YQ==}}]}`:                                "",
		`{clusters: [{name: c, cluster: {server: "https://a"}}], users: [{name: u, user: {client-key-data: YQ==, client-certificate-data: YQ==}}]}`: "",
		`{}`: "",
	} {
		c, err := kubeconfig.Parse([]byte(in), "")
		require.NoError(t, err, in)
		r, err := c.Current()
		if want == "" {
			assert.Error(t, err, in)
			continue
		}
		require.NoError(t, err, in)
		assert.Equal(t, want, r.URL.String())
	}
	_, err := kubeconfig.Load("/no/such/file")
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = kubeconfig.Parse([]byte("a: [b"), "")
	assert.Error(t, err)
	_, err = kubeconfig.Parse(make([]byte, 5<<20), "")
	assert.Error(t, err)
}

func TestCredentialsAreNotSentToRedirectTarget(t *testing.T) {
	sent := make(chan string, 2)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Authorization")
	}))
	defer elsewhere.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Authorization")
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}))
	defer s.Close()
	program := `{apiVersion: client.authentication.k8s.io/v1, command: echo, interactiveMode: Never,
		args: ['{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"abc"}}']}`
	for _, user := range []string{"{token: abc}", "{exec: " + program + "}"} {
		c, err := kubeconfig.Parse([]byte(`{clusters: [{name: c, cluster: {server: "`+s.URL+`"}}], users: [{name: u, user: `+user+`}]}`), "")
		require.NoError(t, err)
		r, err := c.Current()
		require.NoError(t, err)
		client := &http.Client{Transport: r.Transport()}
		resp, err := client.Get(s.URL)
		require.NoError(t, err)
		resp.Body.Close()
		client.CloseIdleConnections()
		assert.Equal(t, "Bearer abc", <-sent)
		assert.Empty(t, <-sent)
	}
}

func TestExecPluginProvidesToken(t *testing.T) {
	s, ca := remote(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	dir := t.TempDir()
	script := `printf '%s' "$KUBERNETES_EXEC_INFO" > info; echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"abc"}}'`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.sh"), []byte("cd "+dir+"; "+script), 0o600))
	parse := func(api string) (*kubeconfig.Remote, error) {
		c, err := kubeconfig.Parse([]byte(`
clusters:
- name: c
  cluster:
    server: `+s.URL+`
    certificate-authority-data: `+base64.StdEncoding.EncodeToString(ca.PEM())+`
    extensions: [{name: client.authentication.k8s.io/exec, extension: {a: 1}}]
users:
- name: u
  user:
    exec: {apiVersion: client.authentication.k8s.io/`+api+`, command: /bin/sh, args: [`+dir+`/plugin.sh], interactiveMode: Never, provideClusterInfo: true}
`), dir)
		require.NoError(t, err)
		return c.Current()
	}
	r, err := parse("v1")
	require.NoError(t, err)
	caller := webhookclient.NewCaller(r)
	defer caller.Close()
	got, err := caller.Post(context.Background(), nil)
	require.NoError(t, err)
	assert.Equal(t, "Bearer abc", string(got))
	info, err := os.ReadFile(filepath.Join(dir, "info"))
	require.NoError(t, err)
	assert.Contains(t, string(info), `"config":{"a":1}`)
	assert.Contains(t, string(info), `"server":"`+s.URL+`"`)
	_, err = parse("v9")
	assert.Error(t, err)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("clusters: [{name: c, cluster: {server: 'https://a'}}]\nusers: [{name: u, user: {token: a}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := kubeconfig.Parse(data, t.TempDir())
		if err != nil {
			return
		}
		if r, err := c.Current(); err == nil {
			assert.NotEmpty(t, r.URL.Host)
		}
	})
}

func ExampleParse() {
	c, err := kubeconfig.Parse([]byte(`
clusters: [{name: hook, cluster: {server: "https://127.0.0.1:8443/authenticate"}}]
users: [{name: me, user: {token: secret}}]
`), "")
	if err != nil {
		panic(err)
	}
	r, err := c.Current()
	fmt.Println(r.URL, err)
	// Output: https://127.0.0.1:8443/authenticate <nil>
}

func ExampleLoad() {
	_, err := kubeconfig.Load("missing.kubeconfig")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output: true
}
