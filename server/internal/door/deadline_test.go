package door_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// pipeListener is a listener whose connections are pipes, which block durably for synctest.
type pipeListener struct {
	conns chan net.Conn
	ended chan struct{}
	close func()
}

func newPipeListener() *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn), ended: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.ended) })
	return l
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// TestStalledReaders: the server ends a response that its client does not read, over each protocol,
// and the connection serves other requests.
func TestStalledReaders(t *testing.T) {
	t.Parallel()
	for _, two := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := servertest.New(t)
			near := apitest.InProcess(t, s)
			for i := range 40 {
				near.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i), "v", strings.Repeat("x", 500_000)))
			}
			l := newPipeListener()
			web := &httptest.Server{Listener: l, Config: &http.Server{Handler: s}, EnableHTTP2: two}
			web.StartTLS()
			defer web.Close()
			web.Client().Transport.(*http.Transport).DialContext = l.dial
			far := apitest.NewClient(t, "https://example.com", web.Client())
			stalled := far.Open(t.Context(), "GET", apitest.ConfigMapsPath, nil)
			defer stalled.Body.Close()
			require.Equal(t, 200, stalled.StatusCode)
			require.NoError(t, s.Shutdown(t.Context()), "waits for the handler, which ends")
			assert.Equal(t, 503, far.Do("GET", apitest.ConfigMapsPath, nil).Code)
		})
	}
}

// TestLongAnswersOfHandlers: a handler that extends its write deadline writes for longer than a
// request may take; the server ends the response if the client reads nothing, or if the handler
// does not extend the deadline.
func TestLongAnswersOfHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		piece := bytes.Repeat([]byte("x"), 64<<10)
		const pieces = 100
		write := func(extend, stall bool) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				for i := 0; i < pieces || stall; i++ {
					if extend {
						_ = c.SetWriteDeadline(time.Now().Add(time.Second))
					}
					if _, err := w.Write(piece); err != nil {
						failed <- err
						return
					}
					if extend {
						_ = c.SetWriteDeadline(time.Time{})
					}
					if !stall {
						time.Sleep(time.Second) // all pieces take longer than a request may
					}
				}
			}
		}
		s := servertest.New(t, func(b *server.Builder) {
			b.Limits.RequestTime = pieces / 2 * time.Second
			b.Handlers = map[string]http.Handler{"/long": write(true, false), "/late": write(false, false), "/stalled": write(true, true)}
		})
		l, web := newPipeListener(), &http.Server{Handler: s}
		served := make(chan error, 1)
		go func() { served <- web.Serve(l) }()
		client := &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
		for path, whole := range map[string]bool{"/long": true, "/late": false} {
			res, err := client.Get("http://example.com" + path)
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, res.Body.Close())
			if whole {
				require.NoError(t, err, path)
				assert.Len(t, body, pieces*len(piece))
				continue
			}
			require.Error(t, err, path)
			require.Error(t, <-failed)
		}
		res, err := client.Get("http://example.com/stalled")
		require.NoError(t, err)
		require.Error(t, <-failed, "the client reads nothing")
		require.NoError(t, res.Body.Close())
		require.NoError(t, web.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}
