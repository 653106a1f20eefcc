package etcdtest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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

// Member is an etcd process.
type Member struct {
	// Endpoint is the address, without a scheme, that the member listens on for clients.
	Endpoint string

	t      testing.TB
	name   string
	health string // the URL that tells whether the member serves
	dir    string
	args   []string
	env    []string
	log    tail
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts an etcd of one member with further flags, and waits until it serves. With the
// flag --cert-file its clients need TLS. Unless there is the flag --unsafe-no-fsync=false the
// disk is not synced, which no death of a process needs.
func Start(t testing.TB, flags ...string) *Member {
	t.Helper()
	m := newMember(t, "single", free(t), flags...)
	m.in("http://"+free(t), "", "")
	m.start()
	m.Ready()
	return m
}

func newMember(t testing.TB, name, client string, flags ...string) *Member {
	scheme := "http"
	if slices.Contains(flags, "--cert-file") {
		scheme = "https"
	}
	m := &Member{Endpoint: client, t: t, name: name, health: "http://" + free(t), dir: filepath.Join(t.TempDir(), name)}
	m.args = append([]string{
		"--name", name, "--data-dir", m.dir, "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", scheme + "://" + client, "--advertise-client-urls", scheme + "://" + client,
		"--listen-metrics-urls", m.health,
	}, flags...)
	return m
}

// in says where the member listens for others, what those know as its address, and who they
// are; by itself it is alone.
func (m *Member) in(listen, advertise, cluster string) {
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
	cmd.SysProcAttr = ended()
	require.NoError(m.t, cmd.Start())
	m.cmd, m.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // it is killed at the end
	}()
	m.t.Cleanup(func() {
		m.Kill()
		if m.t.Failed() {
			m.t.Logf("etcd %s wrote:\n%s", m.name, &m.log)
		}
	})
}

// Kill ends the process as kill -9 does, and returns when it has ended.
func (m *Member) Kill() {
	_ = m.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-m.exited
}

// Restart starts a member again that was killed, with what is on its disk, and waits until it
// serves.
func (m *Member) Restart() {
	m.t.Helper()
	m.start()
	m.Ready()
}

// Erase removes what a member that was killed has on its disk.
func (m *Member) Erase() { require.NoError(m.t, os.RemoveAll(m.dir)) }

// Pid is the number of its process.
func (m *Member) Pid() int { return m.cmd.Process.Pid }

// Pause stops the process as SIGSTOP does: its connections stay open, and nothing answers.
func (m *Member) Pause() { require.NoError(m.t, m.cmd.Process.Signal(syscall.SIGSTOP)) }

// Resume lets a paused process go on. That it serves says Ready.
func (m *Member) Resume() { require.NoError(m.t, m.cmd.Process.Signal(syscall.SIGCONT)) }

// Ready waits until the member serves; one that is cut off from the others does not.
func (m *Member) Ready() {
	m.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	deadline := time.Now().Add(time.Minute)
	for {
		body, err := get(client, m.health+"/health")
		if bytes.Contains(body, []byte(`"true"`)) {
			return
		}
		select {
		case <-m.exited:
			require.FailNow(m.t, "etcd has ended", "%s", &m.log)
		case <-time.After(20 * time.Millisecond):
		}
		require.True(m.t, time.Now().Before(deadline), "etcd does not become ready: %v, %s", err, body)
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

// free returns an address of the loopback at which nobody listens. It is none of those that the
// system gives to outgoing connections, so that a member which is away for a while keeps it.
func free(t testing.TB) string {
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	require.FailNow(t, "no port is free")
	return ""
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
