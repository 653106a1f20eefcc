package serving_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/serving"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A complete server over TLS. The user of the kubeconfig is an administrator.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ca, err := serving.NewAuthority("example")
	if err != nil {
		fmt.Println(err)
		return
	}
	b := &server.Builder{}
	b.Register(builtin.Kinds()...)
	if err := access.Setup(b, access.Config{ClientCAs: ca.Pool()}); err != nil {
		fmt.Println(err)
		return
	}
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err := ca.TLS("127.0.0.1")
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- serving.Run(ctx, s, l, serving.Options{TLS: config}) }()

	kubeconfig, err := ca.Kubeconfig("https://"+l.Addr().String(), "admin", auth.Masters)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(get(kubeconfig, "/readyz"))
	stop()
	fmt.Println(<-ended)
	// Output:
	// 200 ok
	// <nil>
}

// get sends a request as the kubeconfig describes.
func get(file []byte, path string) string {
	config, err := kubeconfig.Parse(file, "")
	if err != nil {
		return err.Error()
	}
	remote, err := config.Current()
	if err != nil {
		return err.Error()
	}
	client := &http.Client{Transport: remote.Transport()}
	defer client.CloseIdleConnections()
	res, err := client.Get(remote.URL.JoinPath(path).String())
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return fmt.Sprint(res.StatusCode, " ", string(body))
}

// TestLoadAuthority checks that certificates are valid after a restart.
func TestLoadAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	first, err := serving.LoadAuthority(dir)
	require.NoError(t, err)
	second, err := serving.LoadAuthority(dir)
	require.NoError(t, err)
	assert.Equal(t, first.Cert.Raw, second.Cert.Raw)
	certPEM, keyPEM, err := first.Server("127.0.0.1", "::1", "name.example")
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	for _, host := range []string{"127.0.0.1", "::1", "name.example"} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: second.Pool(), DNSName: host})
		assert.NoError(t, err, host)
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: second.Pool(), DNSName: "other.example"})
	assert.Error(t, err)
	info, err := os.Stat(filepath.Join(dir, "authority.pem"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "authority.pem"), certPEM, 0o600))
	_, err = serving.LoadAuthority(dir)
	assert.Error(t, err, "a file without its key is not replaced in silence")
}

// TestWritePrivate checks that a file that others can read is replaced, not written to.
func TestWritePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	require.NoError(t, serving.WritePrivate(path, []byte("new")))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "new", string(data))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1)
	assert.Error(t, serving.WritePrivate(filepath.Dir(path), nil))
}

// TestRunServesPlainHTTP serves plain HTTP with a handler around the server. A request in flight is answered
// at shutdown, and cut if it takes too long.
func TestRunServesPlainHTTP(t *testing.T) {
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprint("patient=", patient), func(t *testing.T) {
			s, err := (&server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes}).Build(t.Context())
			require.NoError(t, err)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			begun, goOn := make(chan struct{}), make(chan struct{})
			around := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(begun)
				<-goOn
				s.ServeHTTP(w, r)
			})
			o := serving.Options{Handler: around, Timeout: time.Minute}
			if !patient {
				o.Timeout = time.Millisecond
			}
			ctx, stop := context.WithCancel(t.Context())
			ended, answered := make(chan error, 1), make(chan error, 1)
			go func() { ended <- serving.Run(ctx, s, l, o) }()
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			go func() {
				res, err := client.Get("http://" + l.Addr().String() + "/version")
				if err == nil {
					err = res.Body.Close()
				}
				answered <- err
			}()
			<-begun
			stop()
			if patient {
				close(goOn)
				assert.NoError(t, <-answered)
				assert.NoError(t, <-ended)
				return
			}
			assert.ErrorIs(t, <-ended, context.DeadlineExceeded)
			assert.Error(t, <-answered)
			close(goOn)
		})
	}
}

// served is a running server that a test can stop.
type served struct {
	url   string
	stop  func()
	ended chan error
	ca    *serving.Authority
}

func begin(t *testing.T, o serving.Options) *served {
	ca, err := serving.NewAuthority("example")
	require.NoError(t, err)
	o.TLS, err = ca.TLS("127.0.0.1")
	require.NoError(t, err)
	b := &server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes}
	b.Register(builtin.Kinds()...)
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	out := &served{url: "https://" + l.Addr().String(), stop: stop, ended: make(chan error, 1), ca: ca}
	go func() { out.ended <- serving.Run(ctx, s, l, o) }()
	return out
}

// client returns an HTTP client with its own connections, HTTP/1.1 or HTTP/2.
func (s *served) client(t *testing.T, version int) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool()}, ForceAttemptHTTP2: version == 2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestClientsMoveOn checks that clients open new connections while a server drains, which a load balancer
// routes elsewhere. A watch stays.
func TestClientsMoveOn(t *testing.T) {
	for protocol, version := range map[string]int{"http/1.1": 1, "h2": 2} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca, err := serving.NewAuthority("example")
				require.NoError(t, err)
				config, err := ca.TLS("server.example")
				require.NoError(t, err)
				config.NextProtos = []string{protocol}
				l := newPipes()
				stop, ended := serve(t, l, serving.Options{TLS: config, Drain: 4 * time.Second})
				newClient := func() *http.Client {
					transport := &http.Transport{DialContext: l.dial, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}}
					t.Cleanup(transport.CloseIdleConnections)
					return &http.Client{Transport: transport}
				}
				client := newClient()
				watch, err := newClient().Get("https://server.example/api/v1/namespaces?watch=true")
				require.NoError(t, err)
				defer watch.Body.Close()
				require.Equal(t, version, watch.ProtoMajor)
				reused := func() (again bool) {
					trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { again = c.Reused }}
					r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", "https://server.example/version", nil)
					require.NoError(t, err)
					res, err := client.Do(r)
					require.NoError(t, err)
					_, err = io.Copy(io.Discard, res.Body)
					require.NoError(t, errors.Join(err, res.Body.Close()))
					return again
				}
				require.False(t, reused())
				require.True(t, reused())
				stop()
				for reused() { // until the server ends, which is an error
					time.Sleep(100 * time.Millisecond)
				}
				_, err = io.Copy(io.Discard, watch.Body)
				assert.NoError(t, err, "the watch ends in order")
				assert.NoError(t, <-ended)
			})
		})
	}
}

// TestNothingIsRefused checks that a server that shuts down answers each request that it received, or informs
// the client that it did not process the request.
func TestNothingIsRefused(t *testing.T) {
	s := begin(t, serving.Options{})
	var all, begun sync.WaitGroup
	for range 8 {
		client := s.client(t, 2)
		begun.Add(1)
		all.Go(func() {
			answered := sync.OnceFunc(begun.Done)
			defer answered()
			for {
				res, err := client.Post(s.url+"/api/v1/namespaces/default/configmaps", "application/json", strings.NewReader(`{"metadata":{"generateName":"x"}}`))
				if err != nil {
					var dial *net.OpError
					assert.True(t, errors.As(err, &dial) && dial.Op == "dial", "%v", err)
					return
				}
				text, err := io.ReadAll(res.Body)
				assert.NoError(t, errors.Join(err, res.Body.Close()))
				if !assert.Equal(t, 201, res.StatusCode, "%s", text) {
					return
				}
				answered()
			}
		})
	}
	begun.Wait()
	s.stop()
	all.Wait()
	assert.NoError(t, <-s.ended)
}

// TestHandshakeErrors checks that a client that does not speak TLS is counted.
func TestHandshakeErrors(t *testing.T) {
	ca, err := serving.NewAuthority("example")
	require.NoError(t, err)
	config, err := ca.TLS("127.0.0.1")
	require.NoError(t, err)
	s, err := (&server.Builder{Authorizer: auth.AllowAll}).Build(t.Context())
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serving.Run(ctx, s, l, serving.Options{TLS: config}) }()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	_, err = c.Write([]byte(strings.Repeat("what is TLS?", 100)))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, c) // the server closes the connection
	page := func() string {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	assert.Eventually(t, func() bool { return strings.Contains(page(), "\napiserver_tls_handshake_errors_total 1\n") }, time.Minute, time.Millisecond)
	require.NoError(t, c.Close())
	stop()
	assert.NoError(t, <-ended)
}

// TestConcurrentProcessesShareAuthority checks that processes that start at once in an empty directory get
// the same authority.
func TestConcurrentProcessesShareAuthority(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	var made [8]*serving.Authority
	for i := range made {
		all.Go(func() {
			var err error
			made[i], err = serving.LoadAuthority(dir)
			assert.NoError(t, err)
		})
	}
	all.Wait()
	for _, ca := range made {
		require.NotNil(t, ca)
		assert.Equal(t, made[0].Cert.Raw, ca.Cert.Raw)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 1)
}
