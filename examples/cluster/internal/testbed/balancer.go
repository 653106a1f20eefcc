package testbed

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

// Balancer forwards TCP connections to the ready servers in turn. It does not inspect the traffic, and
// has no credentials.
type Balancer struct {
	listener net.Listener
	servers  []*Server
	ready    []atomic.Bool
	next     atomic.Uint64
	probes   *http.Client

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil after close
	all   sync.WaitGroup
	end   chan struct{}
}

// NewBalancer returns a balancer for servers that are ready. It listens until the test ends.
func NewBalancer(t testing.TB, servers []*Server) *Balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := servers[0].config()
	require.NotNil(t, config)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	b := &Balancer{
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

// Config returns a client configuration of the administrator through the balancer, with connections of
// its own.
func (b *Balancer) Config() *rest.Config {
	c := b.servers[0].config()
	c.Host = "https://" + b.listener.Addr().String()
	return c
}

// Kubeconfig writes a kubeconfig of the administrator through the balancer, and returns its path.
func (b *Balancer) Kubeconfig(path string) string {
	t := b.servers[0].t
	t.Helper()
	c, err := clientcmd.LoadFromFile(b.servers[0].Kubeconfig())
	require.NoError(t, err)
	for _, cluster := range c.Clusters {
		cluster.Server = b.Config().Host
	}
	require.NoError(t, clientcmd.WriteToFile(*c, path))
	return path
}

// Clients returns clients with connections of their own, which do not retry requests. Every second
// client uses HTTP/1.1.
func (b *Balancer) Clients(n int) (list []*Client) {
	for i := range n {
		c := b.Config()
		if i%2 == 1 {
			c.NextProtos = []string{"http/1.1"}
		}
		client, err := rest.HTTPClientFor(c)
		require.NoError(b.servers[0].t, err)
		list = append(list, &Client{URL: c.Host, HTTP: client, t: b.servers[0].t, timeout: time.Minute})
	}
	return list
}

// probe checks whether a server is ready. A slow answer does not change the state of the server.
func (b *Balancer) probe(i int) {
	for {
		if res, err := b.probes.Get(b.servers[i].URL + "/readyz"); err == nil {
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

func (b *Balancer) accept() {
	for {
		from, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.all.Go(func() { b.pass(from) })
	}
}

// pass copies between a client and the next server that is ready and accepts connections.
func (b *Balancer) pass(from net.Conn) {
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
func (b *Balancer) dial() net.Conn {
	for {
		for range b.servers {
			i := int(b.next.Add(1) % uint64(len(b.servers)))
			if !b.ready[i].Load() {
				continue
			}
			if to, err := net.Dial("tcp", strings.TrimPrefix(b.servers[i].URL, "https://")); err == nil {
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

func (b *Balancer) hold(conns ...net.Conn) bool {
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

func (b *Balancer) drop(conns ...net.Conn) {
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

func (b *Balancer) close() {
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
