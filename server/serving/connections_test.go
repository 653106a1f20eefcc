package serving_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/serving"
)

// pipes is an in-process listener whose connections block durably for synctest.
type pipes struct {
	taken chan net.Conn
	ended chan struct{}
	once  sync.Once
	wrap  func(net.Conn) net.Conn // wraps the connection of the server; nil: no wrapper
}

func newPipes() *pipes { return &pipes{taken: make(chan net.Conn), ended: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.taken:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.ended) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	if p.wrap != nil {
		far = p.wrap(far)
	}
	select {
	case p.taken <- far:
		return near, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// TestIdleServerShutsDownAtOnce checks that a server without requests in flight shuts down at once, whatever connections
// clients hold open, and that a watch is ended properly. It uses the clock of the synctest bubble.
func TestIdleServerShutsDownAtOnce(t *testing.T) {
	const most = 50 * time.Millisecond // the first few polls of http.Server.Shutdown
	for name, protocol := range map[string]string{"HTTP/1.1": "http/1.1", "HTTP/2": "h2"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca, err := serving.NewAuthority("example")
				require.NoError(t, err)
				config, err := ca.TLS("server.example")
				require.NoError(t, err)
				config.NextProtos = []string{protocol}
				b := &server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes}
				b.Register(builtin.Kinds()...)
				s, err := b.Build(t.Context())
				require.NoError(t, err)
				l := newPipes()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- serving.Run(ctx, s, l, serving.Options{TLS: config}) }()
				client := &http.Client{Transport: &http.Transport{
					DialContext: l.dial, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: ca.Pool()},
				}}
				defer client.CloseIdleConnections()

				silent, err := l.dial(t.Context(), "", "")
				require.NoError(t, err)
				defer silent.Close()
				res, err := client.Get("https://server.example/version")
				require.NoError(t, err)
				assert.Equal(t, name, strings.TrimSuffix(res.Proto, ".0"))
				_, err = io.Copy(io.Discard, res.Body)
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
				watch, err := client.Get("https://server.example/api/v1/namespaces?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
				require.NoError(t, err)
				defer watch.Body.Close()
				require.Equal(t, http.StatusOK, watch.StatusCode)
				line, err := bufio.NewReader(watch.Body).ReadString('\n')
				require.NoError(t, err, line)

				begin := time.Now()
				stop()
				_, err = io.Copy(io.Discard, watch.Body)
				assert.NoError(t, err, "the response of the watch is complete")
				assert.NoError(t, <-ended)
				assert.Less(t, time.Since(begin), most)
			})
		})
	}
}

// serve runs a server on pipes. It returns a function that stops it, and its result.
func serve(t *testing.T, l *pipes, o serving.Options) (stop func(), ended <-chan error) {
	b := &server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes}
	b.Register(builtin.Kinds()...)
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- serving.Run(ctx, s, l, o) }()
	return stop, end
}

// halfCloser records whether only the write side was closed.
type halfCloser struct {
	net.Conn
	half atomic.Bool
}

func (c *halfCloser) CloseWrite() error {
	c.half.Store(true)
	return nil
}

// TestWriteSideIsClosedFirst checks that the server closes only its write side first if the client still sends, so that
// the client can read the response.
func TestWriteSideIsClosedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var far *halfCloser
		l := newPipes()
		l.wrap = func(c net.Conn) net.Conn {
			far = &halfCloser{Conn: c}
			return far
		}
		stop, ended := serve(t, l, serving.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 10))
			assert.Error(t, err)
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		})})
		c, err := l.dial(t.Context(), "", "")
		require.NoError(t, err)
		_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n"+strings.Repeat("x", 100))
		require.NoError(t, err)
		answer, err := io.ReadAll(c)
		assert.NoError(t, err)
		assert.Contains(t, string(answer), "413 Request Entity Too Large")
		assert.True(t, far.half.Load())
		stop()
		assert.NoError(t, <-ended)
	})
}

// hooked is a connection that reports the first step of the server to close it.
type hooked struct {
	net.Conn
	expires, closes func()
}

func (c *hooked) SetReadDeadline(at time.Time) error {
	if !at.IsZero() && at.Before(time.Now()) {
		c.expires()
	}
	return c.Conn.SetReadDeadline(at)
}

func (c *hooked) Close() error {
	c.closes()
	return c.Conn.Close()
}

// TestFirstRequestAtEnd checks that the first request of a connection is answered if the server has read it,
// while silent connections are closed.
func TestFirstRequestAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		var clients [2]net.Conn
		var made atomic.Int32
		var once sync.Once
		asked := make(chan net.Conn, 1)
		ask := func(c net.Conn) { // while the other connection is being closed
			_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
			assert.NoError(t, err)
			asked <- c
		}
		l := newPipes()
		l.wrap = func(c net.Conn) net.Conn {
			other := 2 - made.Add(1)
			return &hooked{c,
				func() { once.Do(func() { ask(clients[other]) }) },
				func() {
					once.Do(func() {
						ask(clients[other])
						<-begun
					})
				}}
		}
		stop, ended := serve(t, l, serving.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			_, err := io.Copy(w, r.Body)
			assert.NoError(t, err)
		})})
		for i := range clients {
			c, err := l.dial(t.Context(), "", "")
			require.NoError(t, err)
			clients[i] = c
		}
		synctest.Wait()
		stop()
		answer, err := io.ReadAll(<-asked)
		assert.NoError(t, err)
		assert.NoError(t, <-ended)
		select {
		case <-begun:
			assert.Contains(t, string(answer), "hello")
		default: // the server did not read it
		}
	})
}

// TestShutdownDoesNotWaitForReaders checks that clients that stop reading do not delay the shutdown beyond its timeout.
func TestShutdownDoesNotWaitForReaders(t *testing.T) {
	const most = time.Second
	synctest.Test(t, func(t *testing.T) {
		ca, err := serving.NewAuthority("example")
		require.NoError(t, err)
		config, err := ca.TLS("server.example")
		require.NoError(t, err)
		config.NextProtos = []string{"h2"}
		l := newPipes()
		stop, ended := serve(t, l, serving.Options{TLS: config, Timeout: most})
		deaf := make(chan struct{})
		var clients sync.WaitGroup
		for range 3 {
			pipe, err := l.dial(t.Context(), "", "")
			require.NoError(t, err)
			c := tls.Client(pipe, &tls.Config{RootCAs: ca.Pool(), ServerName: "server.example", NextProtos: []string{"h2"}})
			clients.Go(func() {
				frame := make([]byte, 1<<14)
				for goAway := false; !goAway; { // each frame is a TLS record
					n, err := c.Read(frame)
					if !assert.NoError(t, err) {
						return
					}
					goAway = n > 3 && frame[3] == 7
				}
				<-deaf
				_ = pipe.Close()
			})
			_, err = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
			require.NoError(t, err)
		}
		synctest.Wait()
		begin := time.Now()
		stop()
		assert.ErrorIs(t, <-ended, context.DeadlineExceeded)
		assert.Equal(t, most, time.Since(begin))
		close(deaf)
		clients.Wait()
	})
}
