package etcdstore_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const members = 3

// cluster is an etcd of three processes. What they say to each other goes through HTTP
// proxies, one for each member, which alone know where the others are; what clients say to
// them goes through TCP proxies.
type cluster struct {
	members [members]*member
	peers   [members][members]*gate // from one member to another one
	clients [members]*gate
	front   [members]string // the addresses of the TCP proxies
}

// gate is a way that can be closed. Whatever is on it then is cut off.
type gate struct {
	mu     sync.Mutex
	ctx    context.Context // ends when the gate is closed
	cancel context.CancelFunc
}

func newGate() *gate {
	g := &gate{}
	g.open()
	return g
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ctx, g.cancel = context.WithCancel(context.Background())
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cancel()
}

// pass returns a context that ends when ctx does or the gate is closed.
func (g *gate) pass(ctx context.Context) (context.Context, func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

func peerName(i int) string { return fmt.Sprintf("m%d.cluster.test:2380", i) }

func startCluster(t testing.TB, flags ...string) *cluster {
	c := &cluster{}
	var listen [members]string
	var initial []string
	for i := range members {
		listen[i] = free(t)
		initial = append(initial, fmt.Sprintf("m%d=http://%s", i, peerName(i)))
	}
	for i := range members {
		proxy := c.between(t, i, listen)
		m := newMember(t, fmt.Sprint("m", i), "http://"+free(t), "http://"+listen[i], "http://"+peerName(i), strings.Join(initial, ","), flags...)
		m.env = []string{"HTTP_PROXY=" + proxy, "NO_PROXY="}
		c.members[i] = m
		c.clients[i] = newGate()
		c.front[i] = forward(t, c.clients[i], m.client)
		m.start(t)
	}
	for _, m := range c.members {
		m.ready(t)
	}
	return c
}

// between is the proxy by which a member reaches the others.
func (c *cluster) between(t testing.TB, from int, listen [members]string) (address string) {
	hosts := map[string]int{}
	for to := range members {
		c.peers[from][to] = newGate()
		hosts[peerName(to)] = to
	}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: listen[hosts[r.In.Host]]})
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, known := hosts[r.Host]
		if !known {
			http.Error(w, "no such member", http.StatusBadGateway)
			return
		}
		ctx, done := c.peers[from][to].pass(r.Context())
		defer done()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() {
		for _, g := range c.peers[from] {
			g.close()
		}
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL
}

// forward is a TCP proxy to an address.
func forward(t testing.TB, g *gate, to string) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { join(g, from, to) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.close()
		all.Wait()
	})
	return l.Addr().String()
}

// join copies between two connections until one of them or the gate is closed.
func join(g *gate, a net.Conn, to string) {
	defer a.Close()
	ctx, done := g.pass(context.Background())
	defer done()
	b, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	end := func() { _ = a.Close(); _ = b.Close() }
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(a, b); end() })
	both.Go(func() { _, _ = io.Copy(b, a); end() })
	both.Wait()
}

// part cuts a member off from the others, and heal joins it to them.
func (c *cluster) part(i int) { c.links(i, (*gate).close) }
func (c *cluster) heal(i int) { c.links(i, (*gate).open) }

func (c *cluster) links(i int, do func(*gate)) {
	for j := range members {
		if j != i {
			do(c.peers[i][j])
			do(c.peers[j][i])
		}
	}
}
