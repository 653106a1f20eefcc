package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// listener knows the connections that it took, to end those that carry nothing at
// once: http.Server.Shutdown waits five seconds for the first request of a new one,
// and leaves one of HTTP/2 open for a second after it told the client of the end.
type listener struct {
	net.Listener

	mu     sync.Mutex
	open   map[*conn]struct{}
	ending atomic.Bool // written under mu
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, listener: l, told: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending.Load() {
		_ = inner.Close()
		return nil, net.ErrClosed
	}
	l.open[c] = struct{}{}
	return c, nil
}

// conn is one of them.
type conn struct {
	net.Conn
	listener *listener

	outer net.Conn     // what net/http has, with TLS or without; guarded by listener.mu
	state atomic.Int32 // an http.ConnState

	tell sync.Once
	told chan struct{} // closed when something was written since the end began, or the connection is closed
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	last := c.listener.ending.Load()
	n, err := c.Conn.Write(b)
	if last {
		c.tell.Do(func() { close(c.told) })
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	c.tell.Do(func() { close(c.told) })
	return c.Conn.Close()
}

// follow is the http.Server's ConnState.
func (l *listener) follow(outer net.Conn, state http.ConnState) {
	inner := outer
	if t, ok := outer.(*tls.Conn); ok {
		inner = t.NetConn()
	}
	c, ok := inner.(*conn)
	if !ok {
		return
	}
	if state == http.StateNew { // the first that is told
		l.mu.Lock()
		c.outer = outer
		l.mu.Unlock()
	}
	c.state.Store(int32(state))
}

// in returns the connections in a state.
func (l *listener) in(state http.ConnState) (list []*conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if c.state.Load() == int32(state) {
			list = append(list, c)
		}
	}
	return list
}

// end shuts a server down that serves the listener: requests under way finish, and
// what is left when the context ends is cut off.
func (l *listener) end(ctx context.Context, web *http.Server) error {
	l.mu.Lock()
	l.ending.Store(true)
	l.mu.Unlock()
	idle := l.in(http.StateIdle)
	for _, c := range l.in(http.StateNew) {
		_ = c.Close()
	}
	shut := make(chan error, 1)
	go func() { shut <- web.Shutdown(ctx) }()
	for _, c := range idle {
		c.hangUp(ctx)
	}
	err := <-shut
	if err != nil {
		err = errors.Join(err, web.Close())
	}
	return err
}

// hangUp ends an idle connection of HTTP/2 when the client was told which requests
// were taken. That flushes what may be left of the last answer. Only our side is
// closed: then the client reads all of it, whatever it sends meanwhile, and closes
// the other. Other connections net/http closes when they are idle.
func (c *conn) hangUp(ctx context.Context) {
	select {
	case <-c.told:
	case <-ctx.Done():
		return
	}
	c.listener.mu.Lock()
	outer := c.outer
	c.listener.mu.Unlock()
	if t, ok := outer.(*tls.Conn); ok && c.state.Load() == int32(http.StateIdle) {
		_ = t.CloseWrite()
	}
}
