package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
)

// scriptedLamps returns the lamps of a server whose responses the function answer makes. nth counts
// requests from 1.
func scriptedLamps(answer func(r *http.Request, nth int) *http.Response) *client.Objects[Lamp] {
	var requests atomic.Int32
	l := &line{open: map[*cuttable]bool{}, refuse: func(r *http.Request) *http.Response {
		return answer(r, int(requests.Add(1)))
	}}
	return client.Of[Lamp](client.Conn{Transport: l}, registry.Of(lamp)).In("default")
}

// cutOff returns a response that fails after text.
func cutOff(r *http.Request, text string) *http.Response {
	res := answer(r, 200, "")
	res.Body = io.NopCloser(io.MultiReader(strings.NewReader(text), broken{}))
	return res
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// added returns an Added event of a lamp.
func added(name, version string) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"namespace":"default","name":%q,"resourceVersion":%q},"spec":{"color":"red"}}}`+"\n", name, version)
}

// TestWatchResumesAfterIncompleteResponse ends the response before the first event, within an
// event, and after an event without the end of its line.
func TestWatchResumesAfterIncompleteResponse(t *testing.T) {
	half := added("half", "6")[:70]
	for name, first := range map[string]func(*http.Request) *http.Response{
		"nothing":     func(r *http.Request) *http.Response { return cutOff(r, "") },
		"half, cut":   func(r *http.Request) *http.Response { return cutOff(r, half) },
		"half, ended": func(r *http.Request) *http.Response { return answer(r, 200, half) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				lamps := scriptedLamps(func(r *http.Request, nth int) *http.Response {
					switch {
					case nth == 1:
						return first(r)
					case !r.URL.Query().Has("watch"):
						return answer(r, 403, "")
					case nth < 4:
						return answer(r, 200, strings.TrimSpace(added("whole", "7")))
					}
					<-r.Context().Done()
					return answer(r, 503, "")
				})
				w := follow(ctx, lamps, "5")
				synctest.Wait()
				time.Sleep(time.Second)
				require.Len(t, w.events, 1)
				assert.Equal(t, "ADDED default/whole red", <-w.events)
				cancel()
				assert.NoError(t, <-w.err)
			})
		})
	}
}

// TestWatchFailsWithoutVersions checks that events and lists without a resourceVersion are errors,
// because the watch could not resume.
func TestWatchFailsWithoutVersions(t *testing.T) {
	for name, text := range map[string]string{
		"bookmark": `{"type":"BOOKMARK","object":{"metadata":{}}}` + "\n" + added("a", "6"),
		"event":    added("a", ""),
	} {
		lamps := scriptedLamps(func(r *http.Request, _ int) *http.Response { return answer(r, 200, text) })
		assert.ErrorContains(t, <-follow(t.Context(), lamps, "5").err, "no resourceVersion", name)
	}
	lists := scriptedLamps(func(r *http.Request, _ int) *http.Response {
		if r.URL.Query().Has("sendInitialEvents") {
			return answer(r, 422, refusesMatch)
		}
		return answer(r, 200, `{"items":[]}`)
	})
	assert.ErrorContains(t, <-follow(t.Context(), lists, "").err, "no resourceVersion")
}

// refusesMatch is the response of servers that do not support sendInitialEvents.
const refusesMatch = `{"kind":"Status","reason":"Invalid","message":"no","details":{"causes":[{"field":"resourceVersionMatch"}]}}`

// TestCacheStartsOverAfterServerLostData checks that a cache lists again if the server's version
// has decreased: a watch from the old version would be silent.
func TestCacheStartsOverAfterServerLostData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lamps, line := overLine(newServer(t))
		empty := newServer(t)
		for i := range 100 {
			_, err := lamps.Create(t.Context(), newLamp(fmt.Sprint("l", i), 1))
			require.NoError(t, err)
		}
		cache := lamps.Cache()
		run(t, cache)
		require.NoError(t, cache.Wait(t.Context()))
		version := ""
		for l, err := range lamps.All(t.Context()) {
			require.NoError(t, err)
			version = l.ResourceVersion
		}
		w := follow(t.Context(), lamps, version)
		synctest.Wait()
		line.set(true)
		line.mu.Lock()
		line.RoundTripper = empty.Conn(auth.User{Name: "jane"}).Transport
		line.mu.Unlock()
		line.set(false)
		assert.Equal(t, meta.ReasonExpired, meta.ReasonOf(<-w.err))
		time.Sleep(time.Minute)
		assert.Zero(t, cache.Len())
		_, err := lamps.Create(t.Context(), newLamp("new", 1))
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"default/new"}, keysIn(cache, ""))
	})
}

type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestRequestWithoutResponseFails checks that a request fails in time if the server never responds
// and the context has no deadline.
func TestRequestWithoutResponseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lamps := client.Of[Lamp](client.Conn{Transport: silent{}}, registry.Of(lamp)).In("default")
		ctx, cancel := context.WithCancel(context.Background())
		asked := make(chan error, 1)
		go func() {
			_, err := lamps.Get(ctx, "desk")
			asked <- err
		}()
		time.Sleep(10 * time.Minute)
		require.Len(t, asked, 1)
		assert.ErrorContains(t, <-asked, "did not respond for 2m")
		cancel()
	})
}

// TestRetryAfterDate checks that Retry-After may be a date.
func TestRetryAfterDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		lamps := scriptedLamps(func(r *http.Request, nth int) *http.Response {
			if nth == 1 {
				res := answer(r, 503, "")
				res.Header.Set("Retry-After", time.Now().Add(5*time.Second).UTC().Format(http.TimeFormat))
				return res
			}
			return answer(r, 200, `{"metadata":{"name":"desk"}}`)
		})
		_, err := lamps.Get(t.Context(), "desk")
		assert.NoError(t, err)
		assert.Equal(t, 5*time.Second, time.Since(begun))
	})
}
