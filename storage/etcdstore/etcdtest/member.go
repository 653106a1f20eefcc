package etcdtest

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Member is an etcd process. Its methods fail the test on errors, and are not safe for concurrent use.
type Member struct {
	// Endpoint is the address, without a scheme, at which the member listens for clients.
	Endpoint string

	t      testing.TB
	name   string
	health string // base URL of the health endpoint
	dir    string
	args   []string
	env    []string
	log    tail
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts a single-member etcd with additional flags, and waits until it serves. With the flag
// --cert-file, clients need TLS. Unless the flags contain --unsafe-no-fsync=false, etcd does not sync
// its disk, which is safe as long as only processes die.
func Start(t testing.TB, flags ...string) *Member {
	t.Helper()
	m := newMember(t, "single", reserve(t), flags...)
	m.setPeers("http://"+reserve(t), "", "")
	m.start()
	m.Ready()
	return m
}

func newMember(t testing.TB, name, client string, flags ...string) *Member {
	scheme := "http"
	if slices.Contains(flags, "--cert-file") {
		scheme = "https"
	}
	m := &Member{Endpoint: client, t: t, name: name, health: "http://" + reserve(t), dir: filepath.Join(t.TempDir(), name)}
	m.args = append([]string{
		"--name", name, "--data-dir", m.dir, "--log-level", "error", "--unsafe-no-fsync", "--socket-reuse-port",
		"--listen-client-urls", scheme + "://" + client, "--advertise-client-urls", scheme + "://" + client,
		"--listen-metrics-urls", m.health,
	}, flags...)
	return m
}

// setPeers sets the address at which the member listens for other members, the address that it
// advertises to them, and the initial members. If cluster is empty, the member is the only one.
func (m *Member) setPeers(listen, advertise, cluster string) {
	if cluster == "" {
		advertise, cluster = listen, m.name+"="+listen
	}
	m.args = append(m.args, "--listen-peer-urls", listen, "--initial-advertise-peer-urls", advertise, "--initial-cluster", cluster)
}

func (m *Member) start() {
	m.t.Helper()
	path, err := binary()
	require.NoError(m.t, err)
	cmd, exited := exec.Command(path, m.args...), make(chan struct{})
	cmd.Env = append(os.Environ(), m.env...)
	cmd.Stdout, cmd.Stderr = &m.log, &m.log
	cmd.SysProcAttr = killWithParent()
	require.NoError(m.t, cmd.Start())
	m.cmd, m.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // it is killed at the end of the test
	}()
	m.t.Cleanup(func() {
		m.Kill()
		if m.t.Failed() {
			m.t.Logf("etcd %s wrote:\n%s", m.name, &m.log)
		}
	})
}

// Kill kills the process with SIGKILL and returns when it has ended.
func (m *Member) Kill() {
	_ = m.cmd.Process.Signal(syscall.SIGKILL) // it may have ended already
	<-m.exited
}

// Restart starts a killed member again with the data on its disk, and waits until it serves.
func (m *Member) Restart() {
	m.t.Helper()
	m.start()
	m.Ready()
}

// Erase removes the data of a killed member.
func (m *Member) Erase() { require.NoError(m.t, os.RemoveAll(m.dir)) }

// Pid returns the process ID.
func (m *Member) Pid() int { return m.cmd.Process.Pid }

// Pause stops the process with SIGSTOP: its connections stay open, but it does not answer.
func (m *Member) Pause() { require.NoError(m.t, m.cmd.Process.Signal(syscall.SIGSTOP)) }

// Resume continues a paused process. Call Ready to wait until it serves.
func (m *Member) Resume() { require.NoError(m.t, m.cmd.Process.Signal(syscall.SIGCONT)) }

// Ready waits until the member serves. A member that is isolated from the others does not serve.
func (m *Member) Ready() {
	m.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	deadline := time.Now().Add(5 * time.Minute)
	for {
		body, err := get(client, m.health+"/health")
		if bytes.Contains(body, []byte(`"true"`)) {
			return
		}
		select {
		case <-m.exited:
			require.FailNow(m.t, "etcd exited", "%s", &m.log)
		case <-time.After(20 * time.Millisecond):
		}
		require.True(m.t, time.Now().Before(deadline), "etcd is not ready after a minute: %v, %s", err, body)
	}
}

func get(client *http.Client, url string) ([]byte, error) {
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
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
