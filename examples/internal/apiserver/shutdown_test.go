package apiserver

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answered is the outcome of a request.
type answered struct {
	code int
	body string
	err  error
}

// slowCreate starts a create request and returns when the server waits for the rest of the body. finish
// sends the rest.
func (p *process) slowCreate() (finish func(), result <-chan answered) {
	p.Helper()
	body, write := io.Pipe()
	reading := make(chan struct{})
	ctx := httptrace.WithClientTrace(p.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reading) }})
	r, err := http.NewRequestWithContext(ctx, "POST", p.url+mapsPath, body)
	require.NoError(p, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Expect", "100-continue")
	done := make(chan answered, 1)
	go func() {
		res, err := p.client.Do(r)
		if err != nil {
			done <- answered{err: err}
			return
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		done <- answered{res.StatusCode, string(data), err}
	}()
	select {
	case <-reading:
	case a := <-done:
		require.FailNow(p, "the request ended too early", "%+v", a)
	}
	return func() {
		_, _ = io.Copy(write, strings.NewReader(helloCM))
		_ = write.Close()
	}, done
}

// TestTerminationEndsRequestsInOrder sends SIGTERM to a server with a watch and a half-sent request: /readyz
// fails first; after the delay the watch ends; the request gets its answer.
func TestTerminationEndsRequestsInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir, "--shutdown-delay-duration", "10s")
	code, _ := p.call("GET", "/readyz", "")
	require.Equal(t, 200, code)
	watch, err := p.client.Get(p.url + mapsPath + "?watch=true")
	require.NoError(t, err)
	defer watch.Body.Close()
	finish, created := p.slowCreate()

	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		code, _ := p.call("GET", "/readyz", "")
		return code != 200
	}, time.Minute, 5*time.Millisecond)
	code, _ = p.call("GET", "/livez", "")
	assert.Equal(t, 200, code, "the server is live during the delay")
	code, _ = p.call("GET", mapsPath, "")
	assert.Equal(t, 200, code, "the server serves during the delay")

	events, err := io.ReadAll(watch.Body)
	assert.NoError(t, err, "the watch ends without an error")
	assert.NotContains(t, string(events), "hello")
	finish()
	a := <-created
	require.NoError(t, a.err)
	assert.Equal(t, 201, a.code, a.body)
	_, _ = io.Copy(io.Discard, p.stdout)
	require.NoError(t, p.cmd.Wait(), "%s", p.stderr.String())

	p = startProcess(t, dir)
	code, _ = p.call("GET", mapsPath+"/hello", "")
	assert.Equal(t, 200, code, "a write acknowledged during shutdown is stored")
}

// TestSecondSignal: a second signal stops a server that waits for a long shutdown delay.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "--shutdown-delay-duration", "1h")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			require.Error(t, err)
			return
		case <-ctx.Done():
			require.FailNow(t, "the server keeps running")
		case <-time.After(50 * time.Millisecond):
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
}
