package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// listener tracks the connections that it accepted, in order to close idle connections immediately at shutdown.
// Without it, http.Server.Shutdown waits five seconds for the first request of a new connection, and keeps an HTTP/2
// connection open for a second after GOAWAY.
type listener struct {
	net.Listener
	closed sync.Once

	parting atomic.Bool // ask clients to open new connections

	mu     sync.Mutex // guards open
	open   map[*conn]struct{}
	ending atomic.Bool // shutdown has begun; written under mu
}

// Close implements net.Listener. A second call does nothing.
func (l *listener) Close() (err error) {
	l.closed.Do(func() { err = l.Listener.Close() })
	return err
}

// wrap returns a handler that adds "Connection: close" to responses while parting is set. net/http closes an
// HTTP/1.1 connection after such a response, and sends GOAWAY on an HTTP/2 connection, whose requests in
// flight complete.
func (l *listener) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.parting.Load() && r.Header.Get("Upgrade") == "" {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, listener: l, goingAway: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending.Load() {
		_ = inner.Close()
		return nil, net.ErrClosed
	}
	l.open[c] = struct{}{}
	return c, nil
}

// conn is a connection that the listener accepted.
type conn struct {
	net.Conn
	listener *listener

	outer net.Conn     // the connection of net/http: a *tls.Conn or c itself; guarded by listener.mu
	state atomic.Int32 // an http.ConnState; written under listener.mu

	flushed   atomic.Bool // something was written in the present state, so the last response was flushed
	asked     atomic.Bool // the client sent something after shutdown began
	once      sync.Once
	goingAway chan struct{} // closed when GOAWAY was sent or the connection was closed
}

// Read implements net.Conn. A new connection that has sent no request when shutdown begins is not read any
// more.
func (c *conn) Read(b []byte) (int, error) {
	if c.listener.ending.Load() && c.state.Load() == int32(http.StateNew) {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b)
	if n > 0 && c.listener.ending.Load() {
		c.asked.Store(true)
	}
	return n, err
}

// Write implements net.Conn. If the connection is idle during shutdown, the last response was flushed and the client
// has sent nothing since, the write is the GOAWAY frame.
func (c *conn) Write(b []byte) (int, error) {
	last := c.listener.ending.Load() && c.flushed.Load()
	n, err := c.Conn.Write(b)
	c.flushed.Store(true)
	if last && c.state.Load() == int32(http.StateIdle) && !c.asked.Load() {
		c.once.Do(func() { close(c.goingAway) })
	}
	return n, err
}

// CloseWrite lets net/http close only the write side while the client still sends, so that the client can
// read the response. It returns errors.ErrUnsupported if the connection cannot do that.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	c.once.Do(func() { close(c.goingAway) })
	return c.Conn.Close()
}

// follow is the ConnState hook of the http.Server.
func (l *listener) follow(outer net.Conn, state http.ConnState) {
	inner := outer
	if t, ok := outer.(*tls.Conn); ok {
		inner = t.NetConn()
	}
	c, ok := inner.(*conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if state == http.StateNew { // always the first state
		c.outer = outer
	}
	if l.ending.Load() && c.state.Load() == int32(http.StateNew) {
		_ = c.SetReadDeadline(time.Time{}) // the first request was read before end set the deadline: allow it to complete
	}
	c.flushed.Store(false)
	c.state.Store(int32(state))
}

// in returns the connections in a state of http.ConnState.
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

// notice is the time between asking clients to open new connections and the end of their watches, so that
// they resume the watches on other connections.
const notice = 10 * time.Millisecond

// end shuts down the http.Server of the listener. It asks clients to open new connections, ends watches, and
// waits for requests in flight. If the context ends first, it cuts the remaining connections and returns the
// error.
func (l *listener) end(ctx context.Context, web *http.Server, endWatches func()) error {
	_ = l.Close() // before clients are asked to reconnect, so that they reach another server; Shutdown closes it again
	l.parting.Store(true)
	l.mu.Lock()
	l.ending.Store(true)
	for c := range l.open {
		if c.state.Load() == int32(http.StateNew) {
			_ = c.SetReadDeadline(time.Unix(1, 0)) // unblocks the Read that waits for the first request
		}
	}
	l.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range l.in(http.StateIdle) {
		all.Go(func() { c.hangUp(ctx) })
	}
	all.Go(func() {
		time.Sleep(notice)
		endWatches()
	})
	err := web.Shutdown(ctx)
	if err != nil {
		l.cutOff()
		err = errors.Join(err, web.Close())
	}
	all.Wait()
	return err
}

// cutOff closes the connections below TLS, because closing a TLS connection waits to send an alert.
func (l *listener) cutOff() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Conn.Close()
	}
}

// hangUp closes the write side of an idle HTTP/2 connection after GOAWAY was sent, and therefore after the last response
// was flushed. The client reads the rest and closes its own side; if the server closed both sides, the client could lose
// the response. net/http itself closes idle connections of other protocols.
func (c *conn) hangUp(ctx context.Context) {
	select {
	case <-c.goingAway:
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
