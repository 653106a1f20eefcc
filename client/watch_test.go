package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// line is a transport that tests can break: it cuts responses off and refuses requests.
type line struct {
	http.RoundTripper
	mu     sync.Mutex // guards the rest
	down   bool
	open   map[*cuttable]bool
	refuse func(*http.Request) *http.Response // nil: refuses nothing; a nil response passes the request on
	count  int
}

var errDown = errors.New("the line is down")

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	down, refuse := l.down, l.refuse
	l.count++
	l.mu.Unlock()
	if down {
		return nil, errDown
	}
	if refuse != nil {
		if res := refuse(r); res != nil {
			return res, nil
		}
	}
	res, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	c := &cuttable{ReadCloser: res.Body, line: l}
	res.Body = c
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = true
	return res, nil
}

// set takes the line down, which cuts off open responses, or up again.
func (l *line) set(down bool) {
	l.mu.Lock()
	l.down = down
	open := l.open
	l.open = map[*cuttable]bool{}
	l.mu.Unlock()
	if down {
		for c := range open {
			_ = c.ReadCloser.Close()
		}
	}
}

// requests returns the number of attempted requests.
func (l *line) requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

type cuttable struct {
	io.ReadCloser
	line *line
}

func (c *cuttable) Close() error {
	c.line.mu.Lock()
	delete(c.line.open, c)
	c.line.mu.Unlock()
	return c.ReadCloser.Close()
}

// overLine returns the lamps of a server over a line.
func overLine(s *server.Server) (*client.Objects[Lamp], *line) {
	conn := s.Conn(auth.User{Name: "jane"})
	l := &line{RoundTripper: conn.Transport, open: map[*cuttable]bool{}}
	conn.Transport = l
	return client.Of[Lamp](conn, registry.Of(lamp)).In("default"), l
}

// watchResult receives the events of a watch, and its error at the end.
type watchResult struct {
	events chan string
	err    chan error
}

func follow(ctx context.Context, o *client.Objects[Lamp], since string) watchResult {
	w := watchResult{make(chan string, 1000), make(chan error, 1)}
	go func() {
		defer close(w.err)
		for e, err := range o.Watch(ctx, since) {
			switch {
			case err != nil:
				w.err <- err
				return
			case e.Type == client.Synced:
				w.events <- "SYNCED"
			default:
				w.events <- string(e.Type) + " " + e.Key.String() + " " + e.Object.Spec.Color
			}
		}
	}()
	return w
}

func TestWatchReportsChanges(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lamps := asJane(newServer(t)).In("default")
	_, err := lamps.Create(ctx, newLamp("desk", 1))
	require.NoError(t, err)
	page, err := lamps.List(ctx, client.ListOptions{})
	require.NoError(t, err)
	all, after, red := follow(ctx, lamps, ""), follow(ctx, lamps, page.Version), follow(ctx, lamps.WithFields("spec.color=red"), "")
	assert.Equal(t, "ADDED default/desk white", <-all.events)
	assert.Equal(t, "SYNCED", <-all.events)
	assert.Equal(t, "SYNCED", <-red.events)
	_, err = lamps.Patch(ctx, "desk", client.MergePatch(map[string]any{"spec": map[string]any{"color": "red"}}))
	require.NoError(t, err)
	assert.Equal(t, "ADDED default/desk red", <-red.events)
	require.NoError(t, lamps.Delete(ctx, "desk", registry.DeleteOptions{}))
	for _, w := range []watchResult{all, after} {
		assert.Equal(t, "MODIFIED default/desk red", <-w.events)
		assert.Equal(t, "DELETED default/desk red", <-w.events)
	}
	assert.Equal(t, "DELETED default/desk red", <-red.events)
	cancel()
	for _, w := range []watchResult{all, after, red} {
		assert.NoError(t, <-w.err, "its end is no error")
	}
	for range lamps.Watch(t.Context(), "") {
		break // a consumer that stops leaks no goroutine
	}
}

// TestWatchResumesAfterConnectionLoss cuts a watch off several times and for long.
func TestWatchResumesAfterConnectionLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newServer(t)
		steady := asJane(s).In("default")
		lamps, line := overLine(s)
		w := follow(ctx, lamps, "")
		assert.Equal(t, "SYNCED", <-w.events)
		for i, away := range []time.Duration{0, time.Second, 4 * time.Minute} {
			line.set(true)
			name := string(rune('a' + i))
			_, err := steady.Create(ctx, newLamp(name, 1))
			require.NoError(t, err)
			require.NoError(t, steady.Delete(ctx, name, registry.DeleteOptions{}))
			time.Sleep(away)
			line.set(false)
			assert.Equal(t, "ADDED default/"+name+" white", <-w.events)
			assert.Equal(t, "DELETED default/"+name+" white", <-w.events)
		}
		before := line.requests()
		time.Sleep(2 * time.Hour) // bookmarks advance the version of a watch without events, and the server ends watches now and then
		_, err := steady.Create(ctx, newLamp("late", 1))
		require.NoError(t, err)
		assert.Equal(t, "ADDED default/late white", <-w.events)
		assert.Less(t, line.requests()-before, 30)
		assert.Empty(t, w.events)
	})
}

// TestWatchReportsExpired checks that a watch ends with ReasonExpired if the server has compacted
// changes.
func TestWatchReportsExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		lamps, line := overLine(s)
		w := follow(t.Context(), lamps, "")
		assert.Equal(t, "SYNCED", <-w.events)
		line.set(true)
		_, err := asJane(s).Create(t.Context(), newLamp("a", 1))
		require.NoError(t, err)
		time.Sleep(20 * time.Minute)
		_, err = asJane(s).Create(t.Context(), newLamp("b", 1))
		require.NoError(t, err)
		time.Sleep(20 * time.Minute)
		line.set(false)
		assert.Equal(t, meta.ReasonExpired, meta.ReasonOf(<-w.err))
	})
}

// TestWatchEndsAfterPermanentError checks which errors end a watch instead of a retry.
func TestWatchEndsAfterPermanentError(t *testing.T) {
	s := newServer(t)
	lamps, line := overLine(s)
	line.set(true)
	assert.ErrorIs(t, <-follow(t.Context(), lamps, "").err, errDown, "the first attempt")
	line.set(false)
	assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(<-follow(t.Context(), lamps.WithLabels("="), "").err))
	for name, text := range map[string]string{
		"no event":     "{}\n",
		"no JSON":      "<html>\n",
		"another type": `{"type":"ADDED","object":{"spec":{"watts":"many"}}}` + "\n",
		"an error":     `{"type":"ERROR","object":{"kind":"Status","code":403,"reason":"Forbidden","message":"no more"}}` + "\n",
		"no status":    `{"type":"ERROR","object":{}}` + "\n",
	} {
		line.refuse = func(r *http.Request) *http.Response { return answer(r, 200, text) }
		assert.Error(t, <-follow(t.Context(), lamps, "1").err, name)
	}
}

func answer(r *http.Request, code int, text string) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}
}

// TestWatchOfOlderServerListsFirst watches a server that does not support sendInitialEvents.
func TestWatchOfOlderServerListsFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(t)
	lamps, line := overLine(s)
	_, err := lamps.Create(ctx, newLamp("desk", 1))
	require.NoError(t, err)
	watches := []watchResult{}
	for _, says := range []string{refusesMatch, strings.Replace(refusesMatch, "resourceVersionMatch", "sendInitialEvents", 1)} {
		line.mu.Lock()
		line.refuse = func(r *http.Request) *http.Response {
			if !r.URL.Query().Has("sendInitialEvents") {
				return nil
			}
			return answer(r, 422, says)
		}
		line.mu.Unlock()
		w := follow(ctx, lamps, "")
		assert.Equal(t, "ADDED default/desk white", <-w.events)
		assert.Equal(t, "SYNCED", <-w.events)
		watches = append(watches, w)
	}
	require.NoError(t, lamps.Delete(ctx, "desk", registry.DeleteOptions{}))
	for _, w := range watches {
		assert.Equal(t, "DELETED default/desk white", <-w.events)
	}
	cancel()
	for _, w := range watches {
		assert.NoError(t, <-w.err)
	}
}

func TestWatchUnderOrchNames(t *testing.T) {
	s := newServer(t, func(b *server.Builder) { b.Names = names.Orch })
	w := follow(t.Context(), asJane(s), "")
	assert.Equal(t, "SYNCED", <-w.events)
}
