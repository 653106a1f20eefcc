package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNothingBeforeAnAnswer: heads that a server sends before its answer do not reach
// callers, and tell them nothing.
func TestNothingBeforeAnAnswer(t *testing.T) {
	h := newHarbor(t)
	h.listen(says(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</other>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "{}")
	}))
	h.register()
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			t.Errorf("an answer %d came through", code)
			return nil
		},
	}), http.MethodGet, h.front.URL()+berths, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, 200, res.StatusCode)
}

// TestNothingBehindAnAnswer: heads that a server sends after its answer, announced or not, do
// not reach callers.
func TestNothingBehindAnAnswer(t *testing.T) {
	h := newHarbor(t)
	h.listen(says(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Set-Cookie")
		fmt.Fprint(w, "{}")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set(http.TrailerPrefix+"Clear-Site-Data", `"*"`)
	}))
	h.register()
	res, err := http.Get(h.front.URL() + berths)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.Equal(t, "{}", string(body))
	assert.Empty(t, res.Trailer)
	assert.Empty(t, res.Header["Trailer"])
}

// TestTokensOfSockets: no token that a caller sends as a sub-protocol is handed on, also
// where it was not the one that told who calls.
func TestTokensOfSockets(t *testing.T) {
	h := newHarbor(t)
	seen := make(chan http.Header, 10)
	h.listen(says(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, berths) {
			seen <- r.Header.Clone()
		}
		fmt.Fprint(w, "{}")
	}))
	h.register()
	told := func() []string {
		select {
		case head := <-seen:
			return head["Sec-Websocket-Protocol"]
		default:
			return []string{"the request did not come"}
		}
	}
	const token = "base64url.bearer.authorization.k8s.io.c2VjcmV0"
	h.do("GET", berths, nil, "Sec-WebSocket-Protocol", token+", chat,"+token)
	assert.Equal(t, []string{"chat"}, told(), "a request for no WebSocket")
	h.do("GET", berths, nil, "Sec-WebSocket-Protocol", strings.ToUpper(token[:20])+token[20:])
	assert.Empty(t, told())
	socket := &api{t, h.front.URL(), http.DefaultClient}
	socket.do("GET", berths, nil, "Authorization", "Bearer "+h.front.As("admin").Token(), "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Protocol", "chat, "+token)
	assert.Equal(t, []string{"chat"}, told(), "a request with another token")
}

// TestAggregatedMetrics: requests that are handed on are counted under the resources that the
// other server tells of, and those for any other name under none.
func TestAggregatedMetrics(t *testing.T) {
	h := newHarbor(t)
	h.listen(h.back())
	h.register()
	h.must(201, "POST", berths, newBerthBody("east", 100))
	h.must(200, "GET", berths, nil)
	h.must(200, "GET", berths+"/east", nil)
	for _, name := range []string{"a", "b", "c"} {
		h.must(404, "GET", berthAPI+"/namespaces/default/"+name, nil)
	}
	metrics := string(h.must(200, "GET", "/metrics", nil).raw)
	of := func(verb, scope, code string) string {
		return fmt.Sprintf(`apiserver_request_total{code=%q,component="apiserver",dry_run="",group="harbor.example.com",resource="berths",scope=%q,subresource="",verb=%q,version="v1"}`, code, scope, verb)
	}
	assert.Contains(t, metrics, of("POST", "resource", "201")+" 1\n")
	assert.Contains(t, metrics, of("LIST", "namespace", "200")+" 1\n")
	assert.Contains(t, metrics, of("GET", "resource", "200")+" 1\n")
	assert.NotContains(t, metrics, `resource="a"`)
	h.must(200, "DELETE", apiService+"/"+harborName, nil)
	h.settle()
	h.do("GET", berths, nil)
	assert.NotContains(t, string(h.must(200, "GET", "/metrics", nil).raw), `resource="berths"`)
}

// TestReadyAfterTheFirstLook: a server whose store has APIServices is ready when it knows of
// the servers behind it.
func TestReadyAfterTheFirstLook(t *testing.T) {
	h := newHarbor(t)
	const line = "poststarthook/apiservice-discovery-controller"
	h.must(200, "GET", "/readyz/"+line, nil)
	asked, answer := make(chan struct{}, 100), make(chan struct{})
	var holds atomic.Bool
	h.listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if holds.Load() && r.URL.Path == berthAPI {
			asked <- struct{}{}
			select {
			case <-answer:
			case <-r.Context().Done():
			}
		}
		says(http.NotFound)(w, r)
	}))
	h.register()
	holds.Store(true)
	begun := time.Now()
	h.front.Restart()
	<-asked
	if code := h.do("GET", "/readyz/"+line, nil).code; time.Since(begun) < 5*time.Second { // else it has waited long enough
		assert.Equal(t, 500, code)
	}
	h.must(200, "GET", "/livez", nil)
	close(answer)
	h.settle()
	h.must(200, "GET", "/readyz", nil)
}
