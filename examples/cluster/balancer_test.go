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
)

// balancer passes connections on to the servers that are ready, one after the other. It knows
// nothing of what is in them.
type balancer struct {
	listener net.Listener
	servers  []*process
	ready    []atomic.Bool
	next     atomic.Uint64
	probes   *http.Client

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil when it has ended
	all   sync.WaitGroup
	end   chan struct{}
}

func balance(t testing.TB, servers []*process) *balancer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := servers[0].config()
	require.NotNil(t, config)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	b := &balancer{
		listener: l, servers: servers, ready: make([]atomic.Bool, len(servers)), conns: map[net.Conn]struct{}{}, end: make(chan struct{}),
		probes: &http.Client{Transport: transport},
	}
	for i := range servers {
		b.ready[i].Store(true)
		b.all.Go(func() { b.probe(i) })
	}
	b.all.Go(b.accept)
	t.Cleanup(b.close)
	return b
}

// config is how the administrator reaches the servers through the balancer, by connections of
// its own.
func (b *balancer) config() *rest.Config {
	c := b.servers[0].config()
	c.Host = "https://" + b.listener.Addr().String()
	return c
}

func (b *balancer) probe(i int) {
	for {
		b.ready[i].Store(isReady(b.probes, b.servers[i].url))
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

// pass copies between a client and the next server that is ready and there.
func (b *balancer) pass(from net.Conn) {
	defer from.Close()
	for range 2 * len(b.servers) {
		i := int(b.next.Add(1) % uint64(len(b.servers)))
		if !b.ready[i].Load() {
			continue
		}
		to, err := net.DialTimeout("tcp", strings.TrimPrefix(b.servers[i].url, "https://"), time.Second)
		if err != nil {
			continue
		}
		defer to.Close()
		if b.hold(from, to) {
			join(from, to)
			b.drop(from, to)
		}
		return
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

// join copies both ways, and passes on when one side sends no more.
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
