package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// Long tests are requested with flags:
//
//	go test -run TestHistories -hold 1m -timeout 1h
//	go test -run TestRounds -rounds 1000 -timeout 1h
var (
	hold   = flag.Duration("hold", 0, "minimal duration of each fault of TestHistories")
	rounds = flag.Int("rounds", 5, "how often the server of TestRounds is stopped")
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) {
	if mode := os.Getenv(asBeating); mode != "" {
		beating(mode == "every").Main()
		return
	}
	flag.Parse()
	if *candidacy != "" {
		if err := beCandidate(*candidacy, flag.Arg(0)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "cluster-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "cluster")
	code := 1
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Printf("build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is a server in a process of its own, which can be killed, paused and restarted at the same
// address.
type process struct {
	t      testing.TB
	number int
	url    string
	args   []string
	log    tail

	program string   // empty for binary
	env     []string // nil for the environment of the tests

	cmd    *exec.Cmd
	exited chan struct{}
	client *http.Client // client of the administrator

	patience time.Duration // time limit of a request; 0 is 2 seconds
}

// tail is a writer that keeps the end of the data written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b = append(l.b, p...); len(l.b) > 1<<16 {
		l.b = append([]byte(nil), l.b[len(l.b)-1<<15:]...)
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// freePort returns a free port outside the range that the system uses for outgoing connections, so that
// it stays free while a server is down.
func freePort(t testing.TB) int {
	for range 100 {
		port := 12000 + rand.IntN(20000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.FailNow(t, "found no free port")
	return 0
}

// newProcess returns a server with its keys in a directory. It is not started.
func newProcess(t testing.TB, number int, dir string, args ...string) *process {
	port := freePort(t)
	p := &process{t: t, number: number, url: fmt.Sprintf("https://127.0.0.1:%d", port)}
	p.args = append([]string{
		"--data-dir", dir, "--secure-port", fmt.Sprint(port),
		"--kubeconfig", filepath.Join(dir, fmt.Sprintf("admin-%d.kubeconfig", number)),
	}, args...)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("server %d wrote:\n%s", number, &p.log)
		}
	})
	return p
}

// start starts the process without waiting; ready waits until it serves.
func (p *process) start() {
	p.t.Helper()
	cmd, exited := exec.Command(cmp.Or(p.program, binary), p.args...), make(chan struct{})
	cmd.Env, cmd.Stderr = p.env, &p.log
	if runtime.GOOS == "linux" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	require.NoError(p.t, cmd.Start())
	p.cmd, p.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
}

func (p *process) ready() {
	p.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if p.client == nil {
			p.client = p.admin()
		}
		if p.client != nil && isReady(p.client, p.url) {
			return
		}
		select {
		case <-p.exited:
			require.FailNow(p.t, "the server exited", "%s", &p.log)
		case <-time.After(20 * time.Millisecond):
		}
		require.True(p.t, time.Now().Before(deadline), "server %d is not ready in time: %s", p.number, &p.log)
	}
}

// isReady reports whether a server reports that it is ready.
func isReady(client *http.Client, url string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := client.Do(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == 200
}

// kubeconfig returns the path of the kubeconfig that the server writes.
func (p *process) kubeconfig() string {
	return p.args[5]
}

// config returns a client configuration of the administrator, or nil before the server has written it.
func (p *process) config() *rest.Config {
	c, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig())
	if err != nil {
		return nil
	}
	c.QPS = -1
	c.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext // a separate connection pool
	return c
}

func (p *process) admin() *http.Client {
	c := p.config()
	if c == nil {
		return nil
	}
	client, err := rest.HTTPClientFor(c)
	require.NoError(p.t, err)
	return client
}

// kill kills the process with SIGKILL and returns when it has exited.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have exited
	<-p.exited
}

func (p *process) restart() {
	p.t.Helper()
	p.start()
	p.ready()
}

// terminate shuts the process down with SIGTERM.
func (p *process) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	<-p.exited
	require.Zero(p.t, p.cmd.ProcessState.ExitCode(), "%s", &p.log)
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// startServers starts n servers concurrently on one etcd, with additional flags.
func startServers(t testing.TB, endpoints []string, n int, flags ...string) (servers []*process) {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{
		"--storage", "etcd", "--etcd-servers", "http://" + strings.Join(endpoints, ",http://"), "--etcd-compaction-interval", "0",
	}, flags...)
	for i := range n {
		servers = append(servers, newProcess(t, i, dir, args...))
	}
	for _, p := range servers {
		p.start()
	}
	for _, p := range servers {
		p.ready()
	}
	return servers
}

// startThree starts three servers on an etcd with three members.
func startThree(t testing.TB, flags ...string) (*etcdtest.Cluster, []*process) {
	t.Helper()
	c := etcdtest.StartCluster(t)
	return c, startServers(t, c.Endpoints, 3, flags...)
}
