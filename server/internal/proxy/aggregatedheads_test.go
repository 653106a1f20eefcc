package proxy_test

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

	"orch.io/controlplane/server/internal/apitest"
)

// TestInformationalHeadersOfExtensionServersAreDropped: 1xx responses of an extension server do
// not reach the client.
func TestInformationalHeadersOfExtensionServersAreDropped(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	h.listen(serveDiscoveryAnd(func(w http.ResponseWriter, _ *http.Request) {
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

// TestTrailersOfExtensionServersAreDropped: trailers of an extension server, announced or not, do
// not reach the client.
func TestTrailersOfExtensionServersAreDropped(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	h.listen(serveDiscoveryAnd(func(w http.ResponseWriter, _ *http.Request) {
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

// TestWebSocketTokensAreNotForwarded: a bearer token in a WebSocket subprotocol is not forwarded,
// even if it did not authenticate the request.
func TestWebSocketTokensAreNotForwarded(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	seen := make(chan http.Header, 10)
	h.listen(serveDiscoveryAnd(func(w http.ResponseWriter, r *http.Request) {
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
	h.Do("GET", berths, nil, "Sec-WebSocket-Protocol", token+", chat,"+token)
	assert.Equal(t, []string{"chat"}, told(), "a request without WebSocket upgrade")
	h.Do("GET", berths, nil, "Sec-WebSocket-Protocol", strings.ToUpper(token[:20])+token[20:])
	assert.Empty(t, told())
	socket := apitest.NewClient(t, h.front.URL(), http.DefaultClient)
	socket.Do("GET", berths, nil, "Authorization", "Bearer "+h.front.As("admin").Token(), "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Protocol", "chat, "+token)
	assert.Equal(t, []string{"chat"}, told(), "a request with another token")
}

// TestAggregatedMetrics: forwarded requests are counted with the resource if the discovery document of the extension
// server has it, and without resource otherwise.
func TestAggregatedMetrics(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	h.listen(h.back())
	h.register()
	h.Must(201, "POST", berths, newBerthBody("east", 100))
	h.Must(200, "GET", berths, nil)
	h.Must(200, "GET", berths+"/east", nil)
	for _, name := range []string{"a", "b", "c"} {
		h.Must(404, "GET", berthAPI+"/namespaces/default/"+name, nil)
	}
	metrics := string(h.Must(200, "GET", "/metrics", nil).Raw)
	of := func(verb, scope, code string) string {
		return fmt.Sprintf(`apiserver_request_total{code=%q,component="apiserver",dry_run="",group="harbor.example.com",resource="berths",scope=%q,subresource="",verb=%q,version="v1"}`, code, scope, verb)
	}
	assert.Contains(t, metrics, of("POST", "resource", "201")+" 1\n")
	assert.Contains(t, metrics, of("LIST", "namespace", "200")+" 1\n")
	assert.Contains(t, metrics, of("GET", "resource", "200")+" 1\n")
	assert.NotContains(t, metrics, `resource="a"`)
	h.Must(200, "DELETE", apiService+"/"+harborName, nil)
	h.settle()
	h.Do("GET", berths, nil)
	assert.NotContains(t, string(h.Must(200, "GET", "/metrics", nil).Raw), `resource="berths"`)
}

// TestServerIsReadyAfterFirstAvailabilityCheck: a server with stored APIServices becomes ready
// only after it has checked the extension servers.
func TestServerIsReadyAfterFirstAvailabilityCheck(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	const line = "poststarthook/apiservice-discovery-controller"
	h.Must(200, "GET", "/readyz/"+line, nil)
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
		serveDiscoveryAnd(http.NotFound)(w, r)
	}))
	h.register()
	holds.Store(true)
	begun := time.Now()
	h.front.Restart()
	<-asked
	if code := h.Do("GET", "/readyz/"+line, nil).Code; time.Since(begun) < 5*time.Second { // otherwise it has waited long enough
		assert.Equal(t, 500, code)
	}
	h.Must(200, "GET", "/livez", nil)
	close(answer)
	h.settle()
	h.Must(200, "GET", "/readyz", nil)
}

// TestForwardedHeadersAreSetByTheServer: a client cannot forge the headers with the origin and the
// identity of a forwarded request in any spelling, and both servers log it with one audit id.
func TestForwardedHeadersAreSetByTheServer(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	seen := make(chan *http.Request, 10)
	h.listen(serveDiscoveryAnd(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, berths) {
			seen <- r
		}
		fmt.Fprint(w, "{}")
	}))
	h.register()
	send := func(id string) (http.Header, *http.Request) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.front.URL()+berths+"/a%20b?x=y", nil)
		require.NoError(t, err)
		r.Host = "front.example.com"
		r.Header = http.Header{
			"X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Host": {"evil"}, "X-Forwarded-Proto": {"ftp"}, "X-Forwarded-Uri": {"/evil"},
			"X-Forwarded-Prefix": {"/evil"}, "X-Forwarded-Port": {"1"}, "X_Forwarded_Uri": {"/evil"}, "Forwarded": {"for=evil"},
			"X-Remote-User": {"evil"}, "X_Remote_Group": {"system:masters"}, "X-Remote-Extra-A": {"evil"}, "Impersonate_User": {"evil"},
			"Connection": {"X-Hop"}, "X-Hop": {"evil"}, "Audit-Id": {id}, "X-Other": {"stays"},
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
		return answer.Header, <-seen
	}
	answered, got := send("one")
	assert.Equal(t, []string{berths + "/a%20b"}, got.Header["X-Forwarded-Uri"])
	assert.Equal(t, []string{"1.2.3.4, 127.0.0.1"}, got.Header["X-Forwarded-For"])
	assert.Equal(t, []string{"front.example.com"}, got.Header["X-Forwarded-Host"])
	assert.Equal(t, []string{"http"}, got.Header["X-Forwarded-Proto"])
	assert.Equal(t, []string{"stays"}, got.Header["X-Other"])
	assert.Equal(t, []string{"one"}, got.Header["Audit-Id"])
	assert.Equal(t, []string{"one"}, answered["Audit-Id"])
	for name, values := range got.Header {
		assert.NotContains(t, strings.Join(values, " "), "evil", name)
		assert.NotContains(t, strings.Join(values, " "), "system:masters", name)
	}
	assert.NotContains(t, got.Header, "X-Forwarded-Port")
	answered, got = send("not an id")
	assert.Equal(t, answered["Audit-Id"], got.Header["Audit-Id"], "the audit id of this server")
}
