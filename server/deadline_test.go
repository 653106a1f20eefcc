package server_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// TestStalledReaders: who does not read is given up on real connections, too,
// and the connection serves others on.
func TestStalledReaders(t *testing.T) {
	store := memstore.New(memstore.Options{})
	seed := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage = store }))
	for i := range 40 {
		seed.must(201, "POST", configMaps, newConfigMap(fmt.Sprint("c", i), "v", strings.Repeat("x", 500_000)))
	}
	for _, two := range []bool{false, true} {
		s := servertest.New(t, func(b *server.Builder) { b.Storage, b.Limits.RequestTime = store.Fork(), time.Second })
		web := httptest.NewUnstartedServer(s)
		web.EnableHTTP2 = two
		web.StartTLS()
		defer web.Close()
		far := &api{t, web.URL, web.Client()}
		stalled := far.open(t.Context(), "GET", configMaps, nil)
		defer stalled.Body.Close()
		require.Equal(t, 200, stalled.StatusCode)
		require.NoError(t, s.Shutdown(t.Context()), "waits for the handler, which ends")
		assert.Equal(t, 503, far.do("GET", configMaps, nil).code)
	}
}
