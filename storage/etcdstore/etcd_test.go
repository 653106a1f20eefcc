package etcdstore_test

import (
	"bytes"
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

	"github.com/stretchr/testify/require"
)

// binary builds the etcd of internal/etcd, once, and returns its path. Where it is up to date
// nothing is built.
var binary = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "etcdstore-test", "etcd")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("internal", "etcd")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build etcd: %w\n%s", err, out)
	}
	return path, nil
})

// member is an etcd process, which can be killed, paused and started again.
type member struct {
	name   string
	client string // the address that it listens on for clients
	dir    string
	args   []string
	env    []string
	cmd    *exec.Cmd
	exited chan struct{}
	log    *tail
}

// tail keeps the end of what is written to it.
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

// free returns an address of the loopback at which nobody listened a moment ago.
func free(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// single starts an etcd of one member, with more flags. Its syncs of the disk are left out.
func single(t testing.TB, flags ...string) *member {
	m := newMember(t, "single", "http://"+free(t), "http://"+free(t), "", "", flags...)
	m.start(t)
	m.ready(t)
	return m
}

func newMember(t testing.TB, name, client, listen, advertise, cluster string, flags ...string) *member {
	if cluster == "" { // of this member alone
		advertise, cluster = listen, name+"="+listen
	}
	dir := filepath.Join(t.TempDir(), name)
	return &member{name: name, dir: dir, client: client[strings.Index(client, "//")+2:], log: &tail{}, args: append([]string{
		"--name", name, "--data-dir", dir,
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", listen, "--initial-advertise-peer-urls", advertise,
		"--initial-cluster", cluster, "--log-level", "warn", "--unsafe-no-fsync",
	}, flags...)}
}

func (m *member) start(t testing.TB) {
	path, err := binary()
	require.NoError(t, err)
	m.cmd = exec.Command(path, m.args...)
	m.cmd.Env = append(os.Environ(), m.env...)
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, m.cmd.Start())
	exited, cmd := make(chan struct{}), m.cmd
	m.exited = exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // it is killed at the end
	}()
	t.Cleanup(func() { m.kill(); m.told(t) })
}

// told shows what etcd wrote if the test has failed.
func (m *member) told(t testing.TB) {
	if t.Failed() {
		t.Logf("etcd %s wrote:\n%s", m.name, m.log)
	}
}

// kill ends the process as kill -9 does.
func (m *member) kill() {
	_ = m.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-m.exited
}

func (m *member) signal(t testing.TB, sig syscall.Signal) {
	require.NoError(t, m.cmd.Process.Signal(sig))
}

// ready waits until etcd says that it serves.
func (m *member) ready(t testing.TB) {
	deadline := time.Now().Add(time.Minute)
	for {
		resp, err := http.Get("http://" + m.client + "/health")
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if bytes.Contains(body, []byte(`"true"`)) {
				http.DefaultClient.CloseIdleConnections()
				return
			}
		}
		select {
		case <-m.exited:
			require.FailNow(t, "etcd has ended", "%s", m.log)
		case <-time.After(20 * time.Millisecond):
		}
		require.True(t, time.Now().Before(deadline), "etcd does not become ready: %v", err)
	}
}

// forget removes what the member has on its disk.
func (m *member) forget(t testing.TB) { require.NoError(t, os.RemoveAll(m.dir)) }
