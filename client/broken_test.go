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

// scripted is the lamps of a server that answers as told.
func scripted(answer func(r *http.Request, nth int) *http.Response) *client.Objects[Lamp] {
	var requests atomic.Int32
	l := &line{open: map[*cuttable]bool{}, refuse: func(r *http.Request) *http.Response {
		return answer(r, int(requests.Add(1)))
	}}
	return client.Of[Lamp](client.Conn{Transport: l}, registry.Of(lamp)).In("default")
}

// cutOff is an answer that ends in the middle.
func cutOff(r *http.Request, text string) *http.Response {
	res := answer(r, 200, "")
	res.Body = io.NopCloser(io.MultiReader(strings.NewReader(text), broken{}))
	return res
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// added is an event of a lamp at a version.
func added(name, version string) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"namespace":"default","name":%q,"resourceVersion":%q},"spec":{"color":"red"}}}`+"\n", name, version)
}

// TestWatchGoesOnAfterHalfAnAnswer: before its first event, in the middle of one, or with
// one whose line has no end.
func TestWatchGoesOnAfterHalfAnAnswer(t *testing.T) {
	half := added("half", "6")[:70]
	for name, first := range map[string]func(*http.Request) *http.Response{
		"nothing":     func(r *http.Request) *http.Response { return cutOff(r, "") },
		"half, cut":   func(r *http.Request) *http.Response { return cutOff(r, half) },
		"half, ended": func(r *http.Request) *http.Response { return answer(r, 200, half) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				lamps := scripted(func(r *http.Request, nth int) *http.Response {
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

// TestWatchNeedsVersions: without them it would not know where it is.
func TestWatchNeedsVersions(t *testing.T) {
	for name, text := range map[string]string{
		"bookmark": `{"type":"BOOKMARK","object":{"metadata":{}}}` + "\n" + added("a", "6"),
		"event":    added("a", ""),
	} {
		lamps := scripted(func(r *http.Request, _ int) *http.Response { return answer(r, 200, text) })
		assert.ErrorContains(t, <-follow(t.Context(), lamps, "5").err, "no version", name)
	}
	lists := scripted(func(r *http.Request, _ int) *http.Response {
		if r.URL.Query().Has("sendInitialEvents") {
			return answer(r, 422, refusesMatch)
		}
		return answer(r, 200, `{"items":[]}`)
	})
	assert.ErrorContains(t, <-follow(t.Context(), lists, "").err, "without a version")
}

// refusesMatch is what servers say that know of no watches that begin with what is there.
const refusesMatch = `{"kind":"Status","reason":"Invalid","message":"no","details":{"causes":[{"field":"resourceVersionMatch"}]}}`

// TestCacheOfAServerThatLostItsData starts over: a watch from a version that the server
// has not got to would be silent.
func TestCacheOfAServerThatLostItsData(t *testing.T) {
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

// TestAServerThatNeverAnswers does not hold up a caller who waits for ever.
func TestAServerThatNeverAnswers(t *testing.T) {
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
		assert.ErrorContains(t, <-asked, "does not answer for 2m")
		cancel()
	})
}

// TestRetryAfterADate is heeded like one of seconds.
func TestRetryAfterADate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		lamps := scripted(func(r *http.Request, nth int) *http.Response {
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
