package door_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// TestStalledReaders checks, over real connections, that a client which does not read is
// disconnected and that an HTTP/2 connection continues to serve other streams.
func TestStalledReaders(t *testing.T) {
	store := memstore.New(memstore.Options{})
	seed := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage = store }))
	for i := range 40 {
		seed.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i), "v", strings.Repeat("x", 500_000)))
	}
	for _, two := range []bool{false, true} {
		s := servertest.New(t, func(b *server.Builder) { b.Storage, b.Limits.RequestTime = store.Fork(), time.Second })
		web := httptest.NewUnstartedServer(s)
		web.EnableHTTP2 = two
		web.StartTLS()
		defer web.Close()
		far := apitest.NewClient(t, web.URL, web.Client())
		stalled := far.Open(t.Context(), "GET", apitest.ConfigMapsPath, nil)
		defer stalled.Body.Close()
		require.Equal(t, 200, stalled.StatusCode)
		require.NoError(t, s.Shutdown(t.Context()), "waits for the handler, which ends")
		assert.Equal(t, 503, far.Do("GET", apitest.ConfigMapsPath, nil).Code)
	}
}

// TestWriteDeadlineOfHandlers checks that a handler which sets write deadlines may write for longer
// than RequestTime, and that a client which does not read is disconnected with and without them.
func TestWriteDeadlineOfHandlers(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	piece := bytes.Repeat([]byte("x"), 64<<10)
	const pieces = 400
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
					time.Sleep(8 * time.Millisecond) // in total longer than RequestTime
				}
			}
		}
	}
	s := servertest.New(t, func(b *server.Builder) {
		b.Limits.RequestTime = time.Second
		b.Handlers = map[string]http.Handler{"/long": write(true, false), "/late": write(false, false), "/stalled": write(true, true)}
	})
	web := httptest.NewServer(s)
	defer web.Close()
	for path, whole := range map[string]bool{"/long": true, "/late": false} {
		res, err := web.Client().Get(web.URL + path)
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
	res, err := web.Client().Get(web.URL + "/stalled")
	require.NoError(t, err)
	defer res.Body.Close()
	require.Error(t, <-failed, "nobody reads")
}
