package testbed

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
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

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// binary is the path of the program under test.
var binary string

// Main builds the program in the working directory, runs the tests, and exits.
func Main(m *testing.M) {
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

// Binary returns the path of the program that Main has built.
func Binary() string { return binary }

// Server is a server in a process of its own, which keeps its address when it is restarted. The
// exported fields can be changed while the process does not run.
type Server struct {
	Client  // of the administrator, after the first Ready
	Number  int
	Args    []string // the first six are --data-dir, --secure-port and --kubeconfig
	Program string   // path of the program; empty for Binary
	Env     []string // nil for the environment of the tests

	log    tail
	cmd    *exec.Cmd
	exited chan struct{} // closed after the process has exited
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

// NewServer returns a server with its keys in a directory. It is not started.
func NewServer(t testing.TB, number int, dir string, args ...string) *Server {
	port := freePort(t)
	s := &Server{Client: Client{URL: fmt.Sprintf("https://127.0.0.1:%d", port), t: t}, Number: number}
	s.Args = append([]string{
		"--data-dir", dir, "--secure-port", fmt.Sprint(port),
		"--kubeconfig", filepath.Join(dir, fmt.Sprintf("admin-%d.kubeconfig", number)),
	}, args...)
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("server %d wrote:\n%s", number, &s.log)
		}
	})
	return s
}

// StartServers starts n servers concurrently on one etcd, with additional flags.
func StartServers(t testing.TB, endpoints []string, n int, flags ...string) (servers []*Server) {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{
		"--storage", "etcd", "--etcd-servers", "http://" + strings.Join(endpoints, ",http://"), "--etcd-compaction-interval", "0",
	}, flags...)
	for i := range n {
		servers = append(servers, NewServer(t, i, dir, args...))
	}
	for _, s := range servers {
		s.Start()
	}
	for _, s := range servers {
		s.Ready()
	}
	return servers
}

// StartCluster starts three servers on an etcd with three members.
func StartCluster(t testing.TB, flags ...string) (*etcdtest.Cluster, []*Server) {
	t.Helper()
	c := etcdtest.StartCluster(t)
	return c, StartServers(t, c.Endpoints, 3, flags...)
}

// Clients returns the clients of the administrator of the servers.
func Clients(servers ...*Server) (list []*Client) {
	for _, s := range servers {
		list = append(list, &s.Client)
	}
	return list
}

// Start starts the process. It does not wait until the server is ready.
func (s *Server) Start() {
	s.t.Helper()
	cmd, exited := exec.Command(cmp.Or(s.Program, binary), s.Args...), make(chan struct{})
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = s.Env, &s.log, killWithParent()
	require.NoError(s.t, cmd.Start())
	s.cmd, s.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
}

// Ready waits until the server reports that it is ready.
func (s *Server) Ready() {
	s.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if s.HTTP == nil {
			s.HTTP = s.admin()
		}
		if s.HTTP != nil && isReady(s.HTTP, s.URL) {
			return
		}
		select {
		case <-s.exited:
			require.FailNow(s.t, "the server exited", "%s", &s.log)
		case <-time.After(20 * time.Millisecond):
		}
		require.True(s.t, time.Now().Before(deadline), "server %d is not ready in time: %s", s.Number, &s.log)
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

// Kubeconfig returns the path of the kubeconfig that the server writes.
func (s *Server) Kubeconfig() string { return s.Args[5] }

// config returns a client configuration of the administrator, or nil before the server has written it.
func (s *Server) config() *rest.Config {
	c, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		return nil
	}
	c.QPS = -1
	c.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext // a separate connection pool
	return c
}

func (s *Server) admin() *http.Client {
	c := s.config()
	if c == nil {
		return nil
	}
	client, err := rest.HTTPClientFor(c)
	require.NoError(s.t, err)
	return client
}

// Restart starts the process and waits until the server is ready.
func (s *Server) Restart() {
	s.t.Helper()
	s.Start()
	s.Ready()
}

// Kill kills the process with SIGKILL and returns after it has exited.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGKILL) // it may have exited
	<-s.exited
}

// Terminate shuts the server down with SIGTERM. It must exit without an error.
func (s *Server) Terminate() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	<-s.exited
	require.Zero(s.t, s.cmd.ProcessState.ExitCode(), "%s", &s.log)
}

// Pause stops the process with SIGSTOP: its connections stay open, but it does not answer.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume continues the process after Pause.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(sig))
}

// Pid returns the ID of the process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Log returns the end of the server's log.
func (s *Server) Log() string { return s.log.String() }
