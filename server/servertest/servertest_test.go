package servertest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const maps = "/api/v1/namespaces/default/configmaps"

var (
	configMaps = meta.GroupResource{Resource: "configmaps"}
	events     = meta.GroupResource{Resource: "events"}
)

func send(t testing.TB, ctx context.Context, c *http.Client, method, url, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	require.NoError(t, err)
	return res
}

func create(t testing.TB, s *servertest.Server, name, value string) {
	t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q},"data":{"k":%q}}`, name, value)
	res := send(t, context.Background(), s.Client(), "POST", s.Host()+maps, body)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, res.StatusCode, "%.300s", answer)
}

func count(t testing.TB, s *servertest.Server) int {
	t.Helper()
	list, err := s.Objects().List(context.Background(), configMaps, "default")
	require.NoError(t, err)
	return len(list)
}

// TestManyServersHaveSeparateObjects runs 200 servers at once, each with its own objects.
func TestManyServersHaveSeparateObjects(t *testing.T) {
	servers := make([]*servertest.Server, 200)
	for i := range servers {
		servers[i] = servertest.New(t)
	}
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { create(t, s, fmt.Sprintf("m%d", i), "v") })
	}
	all.Wait()
	for i, s := range servers {
		require.Equal(t, 1, count(t, s))
		_, err := s.Objects().Get(t.Context(), configMaps, meta.Key{Namespace: "default", Name: fmt.Sprintf("m%d", i)})
		require.NoError(t, err)
	}
}

func TestForksAreApart(t *testing.T) {
	t.Parallel()
	seeded := servertest.New(t)
	create(t, seeded, "first", "v")
	version := func(s *servertest.Server) string {
		o, err := s.Objects().Get(t.Context(), configMaps, meta.Key{Namespace: "default", Name: "first"})
		require.NoError(t, err)
		return o.ResourceVersion()
	}
	for i := range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			fork := seeded.Fork(t)
			assert.Equal(t, version(seeded), version(fork))
			for j := range i {
				create(t, fork, fmt.Sprintf("more%d", j), "v")
			}
			assert.Equal(t, 1+i, count(t, fork))
			again := fork.Fork(t)
			create(t, again, "again", "v")
			assert.Equal(t, 2+i, count(t, again))
			assert.Equal(t, 1+i, count(t, fork))
			assert.Equal(t, 1, count(t, seeded))
		})
	}
}

// TestForkKnowsOwners checks that a fork deletes the dependents of an owner that is deleted right after the
// fork.
func TestForkKnowsOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seeded := servertest.New(t)
		create(t, seeded, "owner", "v")
		owner, err := seeded.Objects().Get(t.Context(), configMaps, meta.Key{Namespace: "default", Name: "owner"})
		require.NoError(t, err)
		part := fmt.Sprintf(`{"metadata":{"name":"part","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]}}`, owner.UID())
		send(t, t.Context(), seeded.Client(), "POST", seeded.Host()+maps, part).Body.Close()
		require.Equal(t, 2, count(t, seeded))
		fork := seeded.Fork(t)
		begun := time.Now()
		send(t, t.Context(), fork.Client(), "DELETE", fork.Host()+maps+"/owner", "").Body.Close()
		fork.Settle()
		require.Zero(t, count(t, fork))
		require.Equal(t, begun, time.Now(), "no time passed in the bubble")
		require.Equal(t, 2, count(t, seeded))
	})
}

// TestServerRunsInSynctestBubble checks that a watch and an expiring event work in a synctest bubble over hours.
func TestServerRunsInSynctestBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t)
		watch := send(t, t.Context(), s.Client(), "GET", s.Host()+"/api/v1/namespaces/default/events?watch=true&timeoutSeconds=7200&allowWatchBookmarks=true", "")
		lines := make(chan string, 1000)
		go func() {
			defer close(lines)
			for scan := bufio.NewScanner(watch.Body); scan.Scan(); {
				var e struct{ Type string }
				if json.Unmarshal(scan.Bytes(), &e) == nil {
					lines <- e.Type
				}
			}
		}()
		_, err := s.Objects().Create(t.Context(), events, meta.NewObject(map[string]any{
			"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "e", "namespace": "default"},
			"involvedObject": map[string]any{"namespace": "default"},
		}))
		require.NoError(t, err)
		begun := time.Now()
		var seen []string
		for line := range lines {
			if line != "BOOKMARK" {
				seen = append(seen, line)
			}
			if line == "DELETED" {
				assert.GreaterOrEqual(t, time.Since(begun), 59*time.Minute)
			}
		}
		assert.Equal(t, []string{"ADDED", "DELETED"}, seen)
		assert.Equal(t, 2*time.Hour, time.Since(begun).Round(time.Minute), "the watch ended after its timeout")
		require.NoError(t, watch.Body.Close())
	})
}

func TestTransportStreams(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	watch := send(t, t.Context(), s.Client(), "GET", s.Host()+maps+"?watch=true", "")
	defer watch.Body.Close()
	assert.Equal(t, "200 OK", watch.Status)
	scan := bufio.NewScanner(watch.Body)
	for i := range 5 {
		name := fmt.Sprintf("m%d", i)
		create(t, s, name, "v")
		require.True(t, scan.Scan())
		require.Contains(t, scan.Text(), `"name":"`+name+`"`)
	}
}

// TestRequestsEnd ends watches in each way that a client has.
func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t)
		open := func(ctx context.Context) *http.Response {
			return send(t, ctx, s.Client(), "GET", s.Host()+maps+"?watch=true&timeoutSeconds=60", "")
		}
		ctx, cancel := context.WithCancel(t.Context())
		canceled := open(ctx)
		cancel()
		_, err := io.ReadAll(canceled.Body)
		assert.ErrorIs(t, err, context.Canceled)

		closed := open(t.Context())
		require.NoError(t, closed.Body.Close())
		_, err = closed.Body.Read(make([]byte, 1))
		assert.ErrorIs(t, err, http.ErrBodyReadAfterClose)

		timed := &http.Client{Transport: s.Transport(), Timeout: 10 * time.Second}
		res := send(t, t.Context(), timed, "GET", s.Host()+maps+"?watch=true&timeoutSeconds=60", "")
		_, err = io.ReadAll(res.Body)
		var late interface{ Timeout() bool }
		require.ErrorAs(t, err, &late)
		assert.True(t, late.Timeout())

		whole := open(t.Context())
		body, err := io.ReadAll(whole.Body)
		assert.NoError(t, err, "the response of an ended watch is complete")
		assert.Empty(t, body)

		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", s.Host()+maps, nil)
		require.NoError(t, err)
		_, err = s.Transport().RoundTrip(r)
		assert.ErrorIs(t, err, context.Canceled)
	})
}

// brokenBody is a request body that fails, and records whether it was closed.
type brokenBody struct{ closed chan struct{} }

func (b brokenBody) Read([]byte) (int, error) { return 0, errors.New("broken") }
func (b brokenBody) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return nil
}

func TestTransportClosesBodies(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	body := brokenBody{make(chan struct{})}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.Host()+maps, body)
	require.NoError(t, err)
	res, err := s.Transport().RoundTrip(r)
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.NoError(t, res.Body.Close())
	<-body.closed
}

// TestSlowReaderGetsWholeBody checks a slow reader of more than the transport buffers.
func TestSlowReaderGetsWholeBody(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	const objects, size = 12, 1 << 20
	for i := range objects {
		create(t, s, fmt.Sprintf("big%d", i), strings.Repeat("x", size-1000))
	}
	list := send(t, t.Context(), s.Client(), "GET", s.Host()+maps, "")
	defer list.Body.Close()
	create(t, s, "meanwhile", "v") // the slow reader blocks no other request
	buffer, n := make([]byte, 4096), 0
	for {
		m, err := list.Body.Read(buffer)
		n += m
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
	assert.Greater(t, n, objects*(size-1000))

	long := `{"metadata":{"name":"long"},"data":{"k":"` + strings.Repeat("x", 4<<20) + `"}}`
	res := send(t, t.Context(), s.Client(), "POST", s.Host()+maps, long)
	defer res.Body.Close()
	assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
}

// TestServerDoesNotWaitForReader checks that the server does not wait for a client that never reads.
func TestServerDoesNotWaitForReader(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	for i := range 4 {
		create(t, s, fmt.Sprintf("big%d", i), strings.Repeat("x", 1<<19))
	}
	list := send(t, t.Context(), s.Client(), "GET", s.Host()+maps, "")
	require.NoError(t, list.Body.Close())
	watch := send(t, t.Context(), s.Client(), "GET", s.Host()+maps+"?watch=true&resourceVersion=0", "")
	t.Cleanup(func() { _ = watch.Body.Close() }) // before the server ends
}

func TestSocket(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	create(t, s, "a", "v")
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for range 2 {
		res := send(t, t.Context(), c, "GET", s.URL()+maps+"/a", "")
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
}

// TestForkHasConfiguration checks that a fork has the configuration, too.
func TestForkHasConfiguration(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) { b.Limits.Body = 100 }, func(b *server.Builder) { b.Serving.Version = "v1.2.3" })
	res := send(t, t.Context(), s.Client(), "POST", s.Host()+maps, `{"metadata":{"name":"a"},"data":{"k":"`+strings.Repeat("x", 100)+`"}}`)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
	res = send(t, t.Context(), s.Fork(t).Client(), "GET", s.Host()+"/version", "")
	defer res.Body.Close()
	var info struct{ GitVersion string }
	require.NoError(t, json.NewDecoder(res.Body).Decode(&info))
	assert.Equal(t, "v1.2.3", info.GitVersion)
}
