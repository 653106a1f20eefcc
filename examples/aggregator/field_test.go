package aggregator

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"
	wardle "k8s.io/sample-apiserver/pkg/cmd/server"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/server/serving"
)

// patience limits tests that would hang.
const patience = 2 * time.Minute

// cluster returns a server with RBAC that publishes how extension API servers verify its certificate.
// It resolves the Service of the sample to the address of the sample.
func cluster(t *testing.T, sample net.Addr) *servertest.Server {
	t.Helper()
	ca, err := serving.NewAuthority("front-proxy")
	require.NoError(t, err)
	cert, key, err := ca.Client("front-proxy-client")
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return servertest.New(t, func(b *server.Builder) {
		b.Serving.ProxyCertificate = func() (*tls.Certificate, error) { return &pair, nil }
		b.ServiceResolver = func(_ context.Context, s server.Service) (e server.Endpoint, err error) {
			if s.Namespace == "wardle" && s.Name == "api" {
				e.Address = sample.String()
			}
			return e, nil
		}
		users := b.Authenticators
		b.Authenticators, b.Authorizer = nil, nil
		require.NoError(t, access.Setup(b, access.Config{Authenticators: users, Publish: access.Publish{Authentication: access.Authentication{
			ClientCAs: ca.PEM(), ProxyCAs: ca.PEM(), ProxyNames: []string{"front-proxy-client"},
		}}}))
	})
}

// store runs the etcd of the sample and returns its address.
func store(t *testing.T) string {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.LogLevel = t.TempDir(), "fatal"
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.ListenPeerUrls = anywhere, anywhere
	e, err := embed.StartEtcd(c)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return "http://" + e.Clients[0].Addr().String()
}

// run runs the sample until the test ends.
func run(t *testing.T, l net.Listener, kubeconfig string) {
	t.Helper()
	o := wardle.NewWardleServerOptions(io.Discard, io.Discard)
	o.RecommendedOptions.SecureServing.Listener = l
	ctx, cancel := context.WithCancel(context.Background())
	command := wardle.NewCommandStartWardleServer(ctx, o, false)
	command.SetArgs([]string{"--etcd-servers=" + store(t), "--cert-dir=" + t.TempDir(), "--bind-address=127.0.0.1",
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig})
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
}

// kubectl runs a command as a user, and returns its output and whether it succeeded.
func kubectl(t *testing.T, kubeconfig, stdin, line string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "kubectl", strings.Fields(line)...)
	c.Env = []string{"HOME=" + filepath.Dir(kubeconfig), "KUBECONFIG=" + kubeconfig, "PATH=" + os.Getenv("PATH")}
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

// artifacts returns the directory with the sample's own manifests.
func artifacts(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/sample-apiserver").Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(dir)), "artifacts")
}

// TestSampleAPIServer: kubectl uses the kinds of the sample through the server that aggregates it.
func TestSampleAPIServer(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := cluster(t, l.Addr())
	admin := s.As("admin", auth.Masters).Kubeconfig()
	ok := func(config, stdin, line string, want ...string) string {
		t.Helper()
		out, done := kubectl(t, config, stdin, line)
		require.True(t, done, "kubectl %s: %s", line, out)
		for _, w := range want {
			assert.Contains(t, out, w, "kubectl %s", line)
		}
		return out
	}
	ok(admin, "", "create namespace wardle")
	ok(admin, "", "apply -f "+artifacts(t)+"/example")
	// Its manifests lack a permission that its admission needs since version 1.36.
	ok(admin, "", "create clusterrole wardle-policies --verb=get,list,watch "+
		"--resource=mutatingadmissionpolicies.admissionregistration.k8s.io,mutatingadmissionpolicybindings.admissionregistration.k8s.io")
	ok(admin, "", "create clusterrolebinding wardle-policies --clusterrole=wardle-policies --serviceaccount=wardle:apiserver")
	run(t, l, s.As("system:serviceaccount:wardle:apiserver").Kubeconfig())
	ok(admin, "", "wait --for=condition=Available apiservice/v1alpha1.wardle.example.com --timeout=110s")
	ok(admin, "", "get apiservice v1alpha1.wardle.example.com", "wardle/api", "True")
	ok(admin, "", "api-resources --api-group=wardle.example.com", "flunders", "fischers", "wardle.example.com/v1alpha1")
	ok(admin, "", "explain flunder --api-version=wardle.example.com/v1alpha1", "Flunder")

	flunder := artifacts(t) + "/flunders/01-flunder.yaml"
	ok(admin, "", "create -f "+flunder, "flunder.wardle.example.com/my-first-flunder created")
	ok(admin, "", "apply --server-side --force-conflicts -f "+flunder, "serverside-applied")
	ok(admin, "", "label flunder my-first-flunder seen=yes", "labeled")
	ok(admin, "", "get flunders -l seen=yes", "my-first-flunder")
	ok(admin, "", "get --raw /openapi/v2", "/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders", "/apis/apps/v1/deployments")

	// The sample gets the user of the request, and asks this server for authorization.
	ok(admin, "", "create clusterrole flunders --verb=get,list --resource=flunders.wardle.example.com")
	ok(admin, "", "create clusterrolebinding flunders --clusterrole=flunders --user=jane")
	jane := s.As("jane").Kubeconfig()
	ok(jane, "", "get flunders", "my-first-flunder")
	out, done := kubectl(t, jane, "", "delete flunder my-first-flunder")
	require.False(t, done)
	assert.Contains(t, out, `User "jane" cannot delete resource "flunders" in API group "wardle.example.com"`)
	ok(admin, "", "delete flunder my-first-flunder", "deleted")
	ok(admin, "", "get flunders", "No resources found")
}
