package servertest_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestCrashKeepsAcknowledgedWrites checks that clients that write during repeated crashes find all
// acknowledged writes, and continue with the same transport.
func TestCrashKeepsAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	jane := s.As("jane").Client()
	var acknowledged sync.Map
	var count, ended atomic.Int64
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for j := 0; ended.Load() == 0; j++ {
				name := fmt.Sprintf("m%d-%d", i, j)
				if outcome(t, jane, "POST", s.Host()+maps, fmt.Sprintf(`{"metadata":{"name":%q}}`, name)) == "201" {
					acknowledged.Store(name, true)
					count.Add(1)
				}
			}
		})
	}
	for range 5 {
		for before := count.Load(); count.Load() < before+20; {
			outcome(t, jane, "GET", s.Host()+maps+"/m0-0", "")
		}
		s.Crash()
		s.Restart()
	}
	ended.Store(1)
	writers.Wait()
	acknowledged.Range(func(name, _ any) bool {
		_, err := s.Objects().Get(t.Context(), configMaps, meta.Key{Namespace: "default", Name: name.(string)})
		return assert.NoError(t, err)
	})
}

func TestCrashCutsConnectionsAndKeepsData(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	create(t, s, "a", "v")
	socket := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(socket.CloseIdleConnections)
	watch := send(t, t.Context(), s.Client(), "GET", s.Host()+maps+"?watch=1", "")
	defer watch.Body.Close()
	remote := send(t, t.Context(), socket, "GET", s.URL()+maps+"?watch=1", "")
	defer remote.Body.Close()
	hits := s.Fail(servertest.On("delete", "configmaps").Times(1).With(servertest.Conflict))

	s.Crash()
	for _, body := range []io.Reader{watch.Body, remote.Body} {
		_, err := io.ReadAll(body)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	_, err := s.Client().Get(s.Host() + maps)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Equal(t, "no answer", outcome(t, socket, "GET", s.URL()+maps, ""))

	s.Restart()
	for _, way := range []struct {
		client *http.Client
		host   string
	}{{s.Client(), s.Host()}, {socket, s.URL()}} {
		assert.Equal(t, "200", outcome(t, way.client, "GET", way.host+maps+"/a", ""))
	}
	assert.Equal(t, "409", outcome(t, s.Client(), "DELETE", s.Host()+maps+"/a", ""))
	assert.Equal(t, 1, hits.Hits(), "faults stay")
	fork := s.Fork(t)
	assert.Equal(t, 1, count(t, fork))
	fork.Crash() // the test can end with a crashed server
}

// TestRestartEndsWatches checks that Restart ends watches and cuts no connection.
func TestRestartEndsWatches(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.RBAC)
	admin := s.As("admin", "system:masters")
	watch := send(t, t.Context(), admin.Client(), "GET", s.Host()+maps+"?watch=1", "")
	defer watch.Body.Close()
	s.Restart()
	_, err := io.ReadAll(watch.Body)
	require.NoError(t, err)
	assert.Equal(t, "201", outcome(t, admin.Client(), "POST", s.Host()+maps, `{"metadata":{"name":"a"}}`))
	assert.Equal(t, "403", outcome(t, s.Client(), "GET", s.Host()+maps+"/a", ""))
	assert.Equal(t, 1, count(t, s))
}

// TestCrashDuringUpload checks that Crash does not wait for the end of a request body.
func TestCrashDuringUpload(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) { b.Limits.RequestTime = time.Hour })
	socket := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(socket.CloseIdleConnections)
	var clients sync.WaitGroup
	var unfinished []*io.PipeWriter
	for _, way := range []struct {
		client *http.Client
		host   string
	}{{s.Client(), s.Host()}, {socket, s.URL()}} {
		body, rest := io.Pipe()
		clients.Go(func() {
			res, err := way.client.Post(way.host+maps, "application/json", body)
			if err == nil {
				assert.NoError(t, res.Body.Close())
			}
			assert.Error(t, err)
		})
		_, err := rest.Write([]byte(`{"metadata":`))
		require.NoError(t, err)
		unfinished = append(unfinished, rest)
	}
	for strings.Count(s.Requests(), "not ended") < 2 {
		runtime.Gosched()
	}
	s.Crash()
	for _, rest := range unfinished {
		assert.NoError(t, rest.Close())
	}
	clients.Wait()
}

// TestCrashKeepsWritesOfObjects checks acknowledged writes of the client of Objects, which are not HTTP
// requests.
func TestCrashKeepsWritesOfObjects(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	objects := s.Objects()
	var acknowledged atomic.Int64
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for j := 0; ; j++ {
				o := meta.NewObject(map[string]any{"metadata": map[string]any{"name": fmt.Sprintf("m%d-%d", i, j), "namespace": "default"}})
				if _, err := objects.Create(t.Context(), configMaps, o); err != nil {
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	for acknowledged.Load() < 200 {
		runtime.Gosched()
	}
	s.Crash()
	writers.Wait()
	s.Restart()
	assert.GreaterOrEqual(t, count(t, s), int(acknowledged.Load()))
}
