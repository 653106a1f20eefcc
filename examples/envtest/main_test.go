package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/server/serving"
)

const asProgram = "ENVTEST_TEST_IS_THE_PROGRAM"

// TestMain makes the test binary act as the program, under the name by which it is called.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program returns a command for the program under one of its names; its standard error goes to log.
func program(t *testing.T, name string, args ...string) (cmd *exec.Cmd, log *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	log = &bytes.Buffer{}
	cmd = &exec.Cmd{Path: self, Args: append([]string{name}, args...), Stderr: log, Env: append(os.Environ(), asProgram+"=1", "TMPDIR="+t.TempDir())}
	return cmd, log
}

// start runs a program until the test calls stop, and waits until its health check succeeds.
func start(t *testing.T, url, name string, args ...string) (stop func(), log *bytes.Buffer) {
	t.Helper()
	cmd, log := program(t, name, args...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	require.Eventually(t, func() bool {
		res, err := client.Get(url)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode == 200
	}, time.Minute, 10*time.Millisecond)
	return func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), "%s", log)
	}, log
}

// freePort returns a port that was free a moment ago, which is also how envtest chooses ports.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// TestKubeAPIServer starts the server with the flags that envtest passes, and stops it.
func TestKubeAPIServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := serving.NewAuthority("test")
	require.NoError(t, err)
	cert, key, err := ca.Server("127.0.0.1")
	require.NoError(t, err)
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	write("apiserver.crt", cert)
	write("apiserver.key", key)
	accounts, accountsKey := write("sa-signer.crt", cert), write("sa-signer.key", key)
	port := freePort(t)
	url := "https://127.0.0.1:" + port
	stop, log := start(t, url+"/healthz", "kube-apiserver",
		"--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", "--cert-dir="+dir,
		"--client-ca-file="+write("client-cert-auth-ca.crt", ca.PEM()), "--disable-admission-plugins=ServiceAccount",
		"--etcd-servers=http://127.0.0.1:1", "--secure-port="+port, "--service-account-issuer="+url+"/",
		"--service-account-key-file="+accounts, "--service-account-signing-key-file="+accountsKey, "--service-cluster-ip-range=10.0.0.0/24",
		"--etcd-servers=http://127.0.0.1:2", "--v", "0", "--profiling", "--feature-gates=B=true,A=false,WatchList=false",
		"--runtime-config=api/all=true,apps/v1=false,batch/v1/cronjobs=false")

	mine, theirs, err := ca.Client("admin", "system:masters")
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(mine, theirs)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{pair}}}}
	t.Cleanup(client.CloseIdleConnections)
	do := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		res, err := client.Do(r)
		require.NoError(t, err, "the server uses the certificate in --cert-dir")
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(data)
	}
	code, body := do("POST", "/api/v1/namespaces", `{"metadata":{"name":"mine"}}`)
	require.Equal(t, 201, code, body)
	code, _ = do("DELETE", "/api/v1/namespaces/mine", "")
	assert.Equal(t, 200, code)
	code, body = do("GET", "/api/v1/namespaces/mine", "")
	assert.Equal(t, 200, code, "the namespace controller does not run")
	assert.Contains(t, body, "Terminating")
	template := `{"metadata":{"name":"large"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a","args":["` +
		strings.Repeat("x", 1600<<10) + `"]}]}}}`
	code, body = do("POST", "/api/v1/namespaces/default/podtemplates", template)
	assert.Equal(t, 500, code)
	assert.Contains(t, body, "etcdserver: request is too large")
	code, _ = do("GET", "/apis/apps/v1", "")
	assert.Equal(t, 404, code)
	code, body = do("GET", "/apis/batch/v1", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, body, `"jobs"`)
	assert.NotContains(t, body, "cronjobs")
	code, _ = do("GET", "/api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "")
	assert.Equal(t, 422, code, "the known gate WatchList is turned off")
	watch, err := client.Get(url + "/api/v1/configmaps?watch=true")
	require.NoError(t, err)
	defer watch.Body.Close()
	stop()
	assert.Equal(t, 3, strings.Count(log.String(), "\n"), "one line each for the flags, the gates and the answer 500: %s", log)
	assert.Contains(t, log.String(), `flags="--allow-privileged --etcd-servers --profiling"`)
	assert.Contains(t, log.String(), `msg="ignoring unsupported feature gates" gates="A B"`)
}

func TestFlagErrorsMatchKubeAPIServer(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--no-such-flag":                                      "flag provided but not defined: -no-such-flag",
		"--insecure-port=0":                                   "flag provided but not defined: -insecure-port",
		"--authorization-config=x":                            "flag provided but not defined: -authorization-config",
		"--controllers=*,-nosuch":                             `there is no controller "nosuch"`,
		"--controllers=csrsigningg":                           `there is no controller "csrsigningg"`,
		"--runtime-config=a/v1=maybe":                         `"maybe" is neither true nor false`,
		"--runtime-config=batch/v1/nothings":                  `no kind of this version has the plural "nothings"`,
		"--feature-gates=A":                                   "missing bool value for A",
		"--feature-gates=RecoverVolumeExpansionFailure=false": "the feature is stable since release 1.34 and cannot be turned off",
	} {
		cmd, log := program(t, "kube-apiserver", "--secure-port=0", arg)
		require.Error(t, cmd.Run(), arg)
		assert.Equal(t, 1, cmd.ProcessState.ExitCode())
		assert.Contains(t, log.String(), want)
		assert.Equal(t, 1, strings.Count(log.String(), "\n"), "%s", log)
	}
	for arg, want := range map[string]string{ // only one flag of a pair
		"--tls-cert-file=x":              "--tls-cert-file requires --tls-private-key-file",
		"--oidc-client-id=x":             "--oidc-client-id requires --oidc-issuer-url",
		"--kubelet-client-certificate=x": "--kubelet-client-certificate requires --kubelet-client-key",
	} {
		cmd, log := program(t, "kube-apiserver", "--secure-port=0", arg)
		require.Error(t, cmd.Run(), arg)
		assert.Contains(t, log.String(), want)
	}
	for _, name := range []string{"kube-apiserver", "etcd", "envtest"} {
		cmd, log := program(t, name, "--help")
		out, err := cmd.Output()
		assert.NoError(t, err, name)
		assert.Contains(t, string(out)+log.String(), name+" [", "the help shows the usage")
	}
}

// TestFlagsWithoutEffectAreLogged: flags of kube-apiserver that have no effect here are logged, and the
// server starts.
func TestFlagsWithoutEffectAreLogged(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	stop, log := start(t, "https://127.0.0.1:"+port+"/healthz", "kube-apiserver", "--secure-port="+port, "--authorization-mode=RBAC",
		"--audit-log-path="+filepath.Join(t.TempDir(), "log"), "--audit-log-maxsize=1", "--kubelet-preferred-address-types=InternalIP",
		"", // a template that expands to nothing
		"--disable-admission-plugins=PodTopologyLabels,ServiceAccount", "--enable-admission-plugins=PodResizeValidator,NodeRestriction",
		"--runtime-config=api/beta=false,resource.k8s.io/v1beta1=false,batch/v2alpha1=true", "--apiserver-count=1", "")
	stop()
	assert.Contains(t, log.String(), `flags="--apiserver-count --audit-log-path --kubelet-preferred-address-types `+
		`--disable-admission-plugins=PodTopologyLabels --enable-admission-plugins=PodResizeValidator"`)
	assert.Contains(t, log.String(), `versions="batch/v2alpha1 resource.k8s.io/v1beta1"`)
	assert.Equal(t, 2, strings.Count(log.String(), "\n"), "%s", log)
	for _, p := range plugins.Table() {
		assert.NotContains(t, missingPlugins(), p.Name)
	}
}

func TestEtcd(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	stop, log := start(t, "http://127.0.0.1:"+port+"/health", "etcd", "--data-dir", t.TempDir(), "--listen-client-urls=http://127.0.0.1:"+port)
	stop()
	assert.Empty(t, log.String())
}

// TestInstall: many processes create one directory, and another program gets another directory.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	executable := filepath.Join(t.TempDir(), "envtest")
	write := func(content string) { require.NoError(t, os.WriteFile(executable, []byte(content), 0o755)) }
	write("one")
	var all sync.WaitGroup
	made := make([]string, 20)
	for i := range made {
		all.Go(func() {
			var err error
			made[i], err = install(dir, executable)
			assert.NoError(t, err)
		})
	}
	all.Wait()
	for _, assets := range made {
		assert.Equal(t, made[0], assets)
	}
	holds := func(assets, content string) {
		t.Helper()
		for _, name := range []string{"kube-apiserver", "etcd"} {
			data, err := os.ReadFile(filepath.Join(assets, name))
			require.NoError(t, err)
			assert.Equal(t, content, string(data))
			info, err := os.Stat(filepath.Join(assets, name))
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm()&0o700)
		}
	}
	holds(made[0], "one")
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, list, 1, "unexpected files: %v", list)

	require.NoError(t, os.Remove(filepath.Join(made[0], "etcd")))
	again, err := install(dir, executable)
	require.NoError(t, err)
	assert.Equal(t, made[0], again)
	holds(again, "one")

	write("two")
	other, err := install(dir, executable)
	require.NoError(t, err)
	assert.NotEqual(t, made[0], other)
	holds(other, "two")
	holds(made[0], "one")
}

// TestAssets: the program prints one line, the directory, whose binaries run.
func TestAssets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, log := program(t, "envtest", "--dir", dir)
	out, err := cmd.Output()
	require.NoError(t, err, "%s", log)
	assets := strings.TrimSuffix(string(out), "\n")
	assert.Equal(t, dir, filepath.Dir(assets))
	run := exec.Command(filepath.Join(assets, "etcd"), "--help")
	run.Env = append(os.Environ(), asProgram+"=1")
	help, err := run.Output()
	require.NoError(t, err)
	assert.Contains(t, string(help), "answers /health")
	cmd, log = program(t, "envtest", "more")
	require.Error(t, cmd.Run())
	assert.Equal(t, fmt.Sprintln(`envtest: unexpected argument "more"`), log.String())
}
