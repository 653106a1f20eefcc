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

// pipes is a listener within the process, whose connections block as synctest knows.
type pipes struct {
	taken chan net.Conn
	ended chan struct{}
	once  sync.Once
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
	select {
	case p.taken <- far:
		return near, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// TestIdleEnd: where nothing is under way a server ends at once, whatever clients hold
// open, and one that hears of it in the middle of a watch reads its end. The clock is
// that of the bubble: it goes on only where somebody waits for it.
func TestIdleEnd(t *testing.T) {
	const most = 50 * time.Millisecond // of the polls of net/http the first few
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
				assert.NoError(t, err, "a watch ends whole")
				assert.NoError(t, <-ended)
				assert.Less(t, time.Since(begin), most)
			})
		})
	}
}
