package apiserver

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const asProgram = "APISERVER_TEST_IS_THE_PROGRAM"

// TestMain makes the test binary act as the program, so that tests can send it signals.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		Command{}.Main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is the program in a process of its own.
type process struct {
	*testing.T
	cmd        *exec.Cmd
	url        string
	kubeconfig string
	stdout     *bufio.Reader
	stderr     bytes.Buffer
	client     *http.Client
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// startProcess starts the program with a directory and waits until it serves.
func startProcess(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{T: t, kubeconfig: filepath.Join(dir, "admin.kubeconfig")}
	p.cmd = command(append([]string{"--names", "kubernetes", "--secure-port", "0", "--data-dir", dir}, args...)...)
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	p.stdout = bufio.NewReader(out)
	line, err := p.stdout.ReadString('\n')
	require.NoError(t, err)
	p.url = strings.TrimSpace(strings.TrimPrefix(line, "serving on "))
	require.True(t, strings.HasPrefix(p.url, "https://127.0.0.1:"), line)
	p.client = adminClient(t, p.kubeconfig)
	return p
}

// adminClient returns a client with the configuration in path.
func adminClient(t *testing.T, path string) *http.Client {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var config struct {
		Clusters []struct {
			Cluster struct {
				CA string `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Cert string `json:"client-certificate-data"`
				Key  string `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	require.NoError(t, yaml.Unmarshal(data, &config))
	decode := func(s string) []byte {
		b, err := base64.StdEncoding.DecodeString(s)
		require.NoError(t, err)
		return b
	}
	pair, err := tls.X509KeyPair(decode(config.Users[0].User.Cert), decode(config.Users[0].User.Key))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(decode(config.Clusters[0].Cluster.CA)))
	transport := &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
		ExpectContinueTimeout: time.Minute, MaxIdleConnsPerHost: 64,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// call makes a request and returns the status code and the body.
func (p *process) call(method, path, body string) (int, string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.url+path, strings.NewReader(body))
	require.NoError(p, err)
	r.Header.Set("Content-Type", "application/json")
	res, err := p.client.Do(r)
	require.NoError(p, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(p, err)
	return res.StatusCode, string(data)
}

// end sends a signal and waits until the process exits.
func (p *process) end(s os.Signal) error {
	p.Helper()
	require.NoError(p, p.cmd.Process.Signal(s))
	_, _ = io.Copy(io.Discard, p.stdout)
	return p.cmd.Wait()
}

const (
	mapsPath = "/api/v1/namespaces/default/configmaps"
	helloCM  = `{"metadata":{"name":"hello"},"data":{"greeting":"world"}}`
)

// TestPrintedCommandsWork runs the two printed example commands with each naming profile, and checks
// the written files.
func TestPrintedCommandsWork(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"kubernetes", "orch"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, t.TempDir(), "--names", profile)
			for _, prefix := range []string{"try: ", "     "} {
				line, err := p.stdout.ReadString('\n')
				require.NoError(t, err)
				line, ok := strings.CutPrefix(line, prefix)
				require.True(t, ok, line)
				require.Contains(t, line, "kubectl --kubeconfig "+p.kubeconfig)
				p.shell(line)
			}
			for _, private := range []string{p.kubeconfig, filepath.Join(filepath.Dir(p.kubeconfig), "authority.pem")} {
				info, err := os.Stat(private)
				require.NoError(t, err)
				assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), private)
			}
			require.NoError(t, p.end(syscall.SIGINT), "%s", p.stderr.String())
			assert.Empty(t, p.stderr.String())
		})
	}
}

// shell runs a printed command line if kubectl is installed.
func (p *process) shell(line string) {
	p.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		p.Log("no kubectl on this machine: not run:", line)
		return
	}
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = []string{"HOME=" + p.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	assert.NoError(p, err, "%s: %s", line, out)
}

// TestRestart: after a restart, the data and the certificate authority are the same, so the client
// configuration of the first run works.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir)
	code, made := p.call("POST", mapsPath, helloCM)
	require.Equal(t, 201, code, made)
	old := p.client
	require.NoError(t, p.end(syscall.SIGTERM), "%s", p.stderr.String())

	p = startProcess(t, dir)
	p.client = old
	code, found := p.call("GET", mapsPath+"/hello", "")
	require.Equal(t, 200, code)
	assert.JSONEq(t, made, found)
	require.NoError(t, p.end(syscall.SIGTERM))
}

// TestStartErrors: the program refuses to start if that would harm the data.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fails := func(want string, args ...string) {
		t.Helper()
		out, err := command(append([]string{"--secure-port", "0", "--data-dir", dir}, args...)...).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", out)
		assert.Equal(t, 1, exit.ExitCode())
		assert.Contains(t, string(out), want)
		assert.NotContains(t, string(out), "goroutine")
		assert.NotContains(t, string(out), "serving on")
	}
	p := startProcess(t, dir)
	fails("is in use", "--names", "kubernetes")
	require.NoError(t, p.end(syscall.SIGTERM))
	fails(`the store was filled with "kubernetes" names, but this server uses "orch": to use the data in `+dir+
		`, start with --names kubernetes; to use --names orch, select another --data-dir`, "--names", "orch")
	fails("--names must be orch or kubernetes", "--names", "both")
	fails(`unexpected argument "more"`, "more")
}

// TestStartChecks: the health endpoints have a line for each check that tools wait for after the start,
// with its known name.
func TestStartChecks(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "--advertise-address", "192.0.2.7")
	for _, endpoint := range []string{"/livez", "/readyz", "/healthz"} {
		_, body := p.call("GET", endpoint+"?verbose", "")
		for _, name := range []string{"storage-readiness", "start-apiserver-admission-initializer", "generic-apiserver-start-informers", "start-apiextensions-informers",
			"start-apiextensions-controllers", "crd-informer-synced", "bootstrap-controller", "start-system-namespaces-controller",
			"start-service-ip-repair-controllers", "rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes",
			"start-cluster-authentication-info-controller", "start-kube-aggregator-informers", "apiservice-registration-controller",
			"apiservice-status-local-available-controller", "apiservice-status-remote-available-controller",
			"kube-apiserver-autoregistration", "apiservice-openapi-controller"} {
			assert.Contains(t, body, "[+]poststarthook/"+name+" ok\n", endpoint)
		}
	}
	require.NoError(t, p.end(syscall.SIGTERM))
}
