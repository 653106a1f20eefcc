package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

// backend creates a pod named web that is served by a handler.
func (c *cluster) backend(h http.HandlerFunc) *httptest.Server {
	back := httptest.NewServer(h)
	c.T.Cleanup(back.Close)
	c.hasAddress("web", back.Listener.Addr())
	return back
}

// dial sends the beginning of a request: its head, and possibly a part of its body.
func (c *cluster) dial(lines string) (net.Conn, *bufio.Reader) {
	c.T.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.Base, "http://"))
	require.NoError(c.T, err)
	c.T.Cleanup(func() { _ = conn.Close() })
	require.NoError(c.T, conn.SetDeadline(time.Now().Add(apitest.Timeout)))
	fmt.Fprint(conn, strings.ReplaceAll(lines, "\n", "\r\n"))
	return conn, bufio.NewReader(conn)
}

// answered reads a response and checks that it is the last on its connection.
func answered(t *testing.T, in *bufio.Reader) (code int, text string) {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	said, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	_, err = in.ReadByte()
	assert.ErrorIs(t, err, io.EOF)
	return res.StatusCode, string(said)
}

// TestStalledUploadEnds: a stalled upload ends when there is a response, and when the server stops. Later bytes are
// not read as a request.
func TestStalledUploadEnds(t *testing.T) {
	const stalled = " HTTP/1.1\nHost: a\nContent-Length: 100\n\n0123456789"
	c := newCluster(t)
	came := make(chan struct{}, 1)
	c.backend(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		if r.URL.Path == "/wait" {
			came <- struct{}{}
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		w.WriteHeader(409)
		fmt.Fprint(w, "early")
	})
	_, in := c.dial("POST " + apitest.PodsPath + "/web/proxy/x" + stalled)
	code, text := answered(t, in)
	assert.Equal(t, "409 early", fmt.Sprint(code, " ", text))

	down := newAgent(t, false)
	down.Close()
	c.hasAddress("down", down.Listener.Addr())
	_, in = c.dial("POST " + apitest.PodsPath + "/down/proxy/x" + stalled)
	code, text = answered(t, in)
	assert.Equal(t, 503, code)
	assert.Contains(t, text, "error trying to reach service: dial tcp")

	_, in = c.dial("GET " + apitest.PodsPath + "/one/log" + stalled)
	code, text = answered(t, in)
	assert.Equal(t, "200 GET /containerLogs/default/one/c", fmt.Sprint(code, " ", text))

	_, in = c.dial("POST " + apitest.PodsPath + "/web/proxy/wait" + stalled)
	<-came
	require.NoError(t, c.s.Shutdown(t.Context()))
	code, text = answered(t, in)
	assert.Equal(t, 503, code)
	assert.Contains(t, text, "the server is shutting down")
}

// TestStalledBodyOfRefusedRequestEnds: net/http reads the unread body of a refused request, but not forever.
func TestStalledBodyOfRefusedRequestEnds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(b *server.Builder) { b.Limits.RequestTime = 10 * time.Second })
	_, in := c.dial("POST " + apitest.PodsPath + "/one/log HTTP/1.1\nHost: a\nContent-Length: 100\n\n0123456789")
	code, _ := answered(t, in)
	assert.Equal(t, 405, code)
}

// TestUpgradeWithBodyIsRefused: the end of the body and the start of the other protocol could not be distinguished.
func TestUpgradeWithBodyIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, body := range []string{"Content-Length: 5\n\nabcd\n", "Content-Length: 100\n\nabc", "Transfer-Encoding: chunked\n\n1\na\n0\n\n"} {
		_, in := c.dial("POST " + apitest.PodsPath + "/one/exec HTTP/1.1\nHost: a\nConnection: Upgrade, close\nUpgrade: SPDY/3.1\n" + body)
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		said, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, 400, res.StatusCode)
		assert.Contains(t, string(said), "an upgrade request has no body")
	}
	conn, in := c.dial("POST " + apitest.PodsPath + "/one/exec HTTP/1.1\nHost: a\nConnection: Upgrade\nUpgrade: SPDY/3.1\nContent-Length: 0\n\n")
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	assert.Equal(t, 101, res.StatusCode)
	fmt.Fprintln(conn, "ping")
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "PING\n", line)
}

// TestInformationalResponsesAreForwarded: 1xx responses reach the client, and the final response
// has its complete header even if this server made it.
func TestInformationalResponsesAreForwarded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.backend(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Before", "yes")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("X-Before")
		if r.URL.Path == "/gone" {
			panic(http.ErrAbortHandler)
		}
	})
	plain := c.Must(200, "GET", apitest.PodsPath+"/one", nil)
	plain.Header.Del("Content-Type")
	for path, want := range map[string]int{"": 200, "gone": 503} {
		var before []string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			before = append(before, h.Get("X-Before"))
			return nil
		}})
		res := c.Open(ctx, "GET", apitest.PodsPath+"/web/proxy/"+path, nil)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, want, res.StatusCode)
		assert.Equal(t, []string{"yes"}, before)
		assert.Empty(t, res.Header.Get("X-Before"))
		for name := range plain.Header { // no header of this server is lost or repeated
			assert.Len(t, res.Header.Values(name), 1, name)
		}
		assert.Equal(t, want, apitest.InProcess(t, c.s).Do("GET", apitest.PodsPath+"/web/proxy/"+path, nil).Code)
	}
}

// TestAbortedInProcessResponseIsAnError: an aborted in-process response is an error, neither a
// complete body nor a Status.
func TestAbortedInProcessResponseIsAnError(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(b *server.Builder) {
		b.Handlers = map[string]http.Handler{"/none": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })}
	})
	c.backend(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	res := apitest.InProcess(t, c.s).Open(t.Context(), "GET", apitest.PodsPath+"/web/proxy/x", nil)
	text, err := io.ReadAll(res.Body)
	assert.Equal(t, "half", string(text))
	assert.Error(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://a/none", nil)
	require.NoError(t, err)
	_, err = c.s.Transport().RoundTrip(r)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// TestResponseCutByShutdownIsIncomplete: a client can tell that a response which shutdown
// interrupted is incomplete.
func TestResponseCutByShutdownIsIncomplete(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.backend(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	res := c.Open(t.Context(), "GET", apitest.PodsPath+"/web/proxy/x", nil)
	require.NoError(t, c.s.Shutdown(t.Context()))
	text, err := io.ReadAll(res.Body)
	assert.Equal(t, "half", string(text))
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// TestUnrequestedProtocolIsAnError: if a target switches to a protocol that the caller did not request, the response
// is an error and the connection is not reused.
func TestUnrequestedProtocolIsAnError(t *testing.T) {
	t.Parallel()
	closed := make(chan error, 2)
	c := newCluster(t)
	c.backend(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			closed <- err
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		_, err = buffered.ReadByte()
		closed <- err
	})
	for _, asks := range []string{"Connection: close\n\n", "Connection: Upgrade, close\nUpgrade: mine\n\n"} {
		_, in := c.dial("GET " + apitest.PodsPath + "/web/proxy/x HTTP/1.1\nHost: a\n" + asks)
		code, text := answered(t, in)
		assert.Equal(t, 502, code)
		assert.Contains(t, text, "invalid upgrade response")
		assert.Error(t, <-closed)
	}
}
