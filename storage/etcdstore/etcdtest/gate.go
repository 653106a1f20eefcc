package etcdtest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// gate is a connection path that can be closed. Closing it ends everything that uses it.
type gate struct {
	mu     sync.Mutex
	ctx    context.Context // ends when the gate is closed; replaced by open
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
	if g.ctx == nil || g.ctx.Err() != nil {
		g.ctx, g.cancel = context.WithCancel(context.Background())
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cancel()
}

// pass returns a context that ends when ctx ends or the gate is closed. If the gate is closed already,
// the context has ended when pass returns, so that nothing gets through.
func (g *gate) pass(ctx context.Context) (context.Context, func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ctx, cancel)
	if g.ctx.Err() != nil {
		cancel() // AfterFunc cancels asynchronously
	}
	return ctx, func() { stop(); cancel() }
}

// forward starts a TCP proxy to the address to, and returns its address.
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

// join connects a to the address to, and copies in both directions until a connection or the gate is
// closed.
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
