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

// listener knows the connections that it took, to end those that carry nothing at
// once: http.Server.Shutdown waits five seconds for the first request of a new one,
// and leaves one of HTTP/2 open for a second after it told the client of the end.
type listener struct {
	net.Listener
	closed sync.Once

	parting atomic.Bool // clients are asked to come by another connection

	mu     sync.Mutex
	open   map[*conn]struct{}
	ending atomic.Bool // written under mu
}

// Close implements net.Listener. A second time it does nothing.
func (l *listener) Close() (err error) {
	l.closed.Do(func() { err = l.Listener.Close() })
	return err
}

// around lets clients know which answer is the last on its connection, once they are to come by
// another one. One of HTTP/2 takes no more requests then, and those under way go on.
func (l *listener) around(h http.Handler) http.Handler {
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

// conn is one of them.
type conn struct {
	net.Conn
	listener *listener

	outer net.Conn     // what net/http has, with TLS or without; guarded by listener.mu
	state atomic.Int32 // an http.ConnState; written under listener.mu

	flushed   atomic.Bool // something was written since the state is what it is, so that nothing is left to be
	asked     atomic.Bool // the client sent something since the end began
	once      sync.Once
	goingAway chan struct{} // closed when the client was told that no more requests are taken, or the connection is closed
}

// Read implements net.Conn. What has brought no request when the end begins brings none.
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

// Write implements net.Conn. What is written at the end to a client that has sent nothing, and
// has got all that was for it, tells it of the end.
func (c *conn) Write(b []byte) (int, error) {
	last := c.listener.ending.Load() && c.flushed.Load()
	n, err := c.Conn.Write(b)
	c.flushed.Store(true)
	if last && c.state.Load() == int32(http.StateIdle) && !c.asked.Load() {
		c.once.Do(func() { close(c.goingAway) })
	}
	return n, err
}

// CloseWrite lets net/http end our side alone where the client still sends, so that he
// reads the answer. The error is errors.ErrUnsupported if the connection cannot.
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if state == http.StateNew { // the first of all
		c.outer = outer
	}
	if l.ending.Load() && c.state.Load() == int32(http.StateNew) {
		_ = c.SetReadDeadline(time.Time{}) // the request was read before end set one
	}
	c.flushed.Store(false)
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

// notice is how long before their watches end clients hear that their connections do, so that
// they go on by others.
const notice = 10 * time.Millisecond

// end shuts a server down that serves the listener: clients come by other connections,
// watches end, requests under way finish, and what is left when the context ends is cut off.
func (l *listener) end(ctx context.Context, web *http.Server, endWatches func()) error {
	_ = l.Close() // before clients are told to come by another connection; Shutdown closes it, too
	l.parting.Store(true)
	l.mu.Lock()
	l.ending.Store(true)
	for c := range l.open {
		if c.state.Load() == int32(http.StateNew) {
			_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes who waits for a request, see Read
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

// cutOff closes the connections below TLS, which would wait to take leave of clients.
func (l *listener) cutOff() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Conn.Close()
	}
}

// hangUp ends an idle connection of HTTP/2 when the client was told which requests
// were taken. That flushes what may be left of the last answer. Only our side is
// closed: then the client reads all of it, whatever it sends meanwhile, and closes
// the other. Other connections net/http closes when they are idle.
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
