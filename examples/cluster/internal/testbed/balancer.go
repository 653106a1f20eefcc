package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// balancer forwards TCP connections to the ready servers in turn. It does not inspect the traffic, and
// has no credentials.
type balancer struct {
	listener net.Listener
	servers  []*process
	ready    []atomic.Bool
	next     atomic.Uint64
	probes   *http.Client

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil after close
	all   sync.WaitGroup
	end   chan struct{}
}

func balance(t testing.TB, servers []*process) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := servers[0].config()
	require.NotNil(t, config)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	b := &balancer{
		listener: l, servers: servers, ready: make([]atomic.Bool, len(servers)), conns: map[net.Conn]struct{}{}, end: make(chan struct{}),
		probes: &http.Client{Transport: transport, Timeout: 10 * time.Second},
	}
	for i := range servers {
		b.ready[i].Store(true)
		b.all.Go(func() { b.probe(i) })
	}
	b.all.Go(b.accept)
	t.Cleanup(b.close)
	return b
}

// config returns a client configuration of the administrator through the balancer, with connections of
// its own.
func (b *balancer) config() *rest.Config {
	c := b.servers[0].config()
	c.Host = "https://" + b.listener.Addr().String()
	return c
}

// kubeconfig writes a kubeconfig of the administrator through the balancer.
func (b *balancer) kubeconfig(path string) string {
	t := b.servers[0].t
	t.Helper()
	c, err := clientcmd.LoadFromFile(b.servers[0].kubeconfig())
	require.NoError(t, err)
	for _, cluster := range c.Clusters {
		cluster.Server = b.config().Host
	}
	require.NoError(t, clientcmd.WriteToFile(*c, path))
	return path
}

// callers returns clients with connections of their own, which do not retry requests. Every second
// client uses HTTP/1.1.
func (b *balancer) callers(n int) (list []*process) {
	for i := range n {
		c := b.config()
		if i%2 == 1 {
			c.NextProtos = []string{"http/1.1"}
		}
		client, err := rest.HTTPClientFor(c)
		require.NoError(b.servers[0].t, err)
		list = append(list, &process{number: i, url: c.Host, client: client, patience: time.Minute})
	}
	return list
}

// probe checks whether a server is ready. A slow answer does not change the state of the server.
func (b *balancer) probe(i int) {
	for {
		if res, err := b.probes.Get(b.servers[i].url + "/readyz"); err == nil {
			_ = res.Body.Close()
			b.ready[i].Store(res.StatusCode == http.StatusOK)
		}
		select {
		case <-b.end:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (b *balancer) accept() {
	for {
		from, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.all.Go(func() { b.pass(from) })
	}
}

// pass copies between a client and the next server that is ready and accepts connections.
func (b *balancer) pass(from net.Conn) {
	defer from.Close()
	to := b.dial()
	if to == nil {
		return
	}
	defer to.Close()
	if b.hold(from, to) {
		join(from, to)
		b.drop(from, to)
	}
}

// dial waits for a server. It returns nil after close.
func (b *balancer) dial() net.Conn {
	for {
		for range b.servers {
			i := int(b.next.Add(1) % uint64(len(b.servers)))
			if !b.ready[i].Load() {
				continue
			}
			if to, err := net.Dial("tcp", strings.TrimPrefix(b.servers[i].url, "https://")); err == nil {
				return to
			}
		}
		select {
		case <-b.end:
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (b *balancer) hold(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		if b.conns == nil {
			return false
		}
		b.conns[c] = struct{}{}
	}
	return true
}

func (b *balancer) drop(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.conns, c)
	}
}

// join copies in both directions, and forwards the end of either direction.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	oneWay := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			_, _ = to.Close(), from.Close()
			return
		}
		if half, ok := to.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { oneWay(a, b) })
	both.Go(func() { oneWay(b, a) })
	both.Wait()
}

func (b *balancer) close() {
	close(b.end)
	_ = b.listener.Close()
	b.mu.Lock()
	for c := range b.conns {
		_ = c.Close()
	}
	b.conns = nil
	b.mu.Unlock()
	b.all.Wait()
}
