package watchstream_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// console is a client over HTTPS that, like a browser, opens watches as WebSockets.
type console struct {
	*apitest.Client
	s *servertest.Server
}

func newConsole(t testing.TB, configure ...func(*server.Builder)) console {
	s := servertest.New(t, configure...)
	web := httptest.NewUnstartedServer(s)
	web.StartTLS()
	t.Cleanup(web.Close)
	return console{apitest.NewClient(t, web.URL, web.Client()), s}
}

// dial opens a watch; headers are alternating names and values.
func (c console) dial(path string, protocols []string, headers ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{"Origin": {"https://console.example.com"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Timeout)
	defer cancel()
	ws, res, err := websocket.Dial(ctx, c.Base+path, &websocket.DialOptions{HTTPClient: c.HTTP, HTTPHeader: h, Subprotocols: protocols})
	if err == nil {
		c.T.Cleanup(func() { _ = ws.CloseNow() })
		ws.SetReadLimit(-1)
	}
	return ws, res, err
}

// messages opens a watch and reads n messages.
func (c console) messages(n int, path string, headers ...string) (*websocket.Conn, websocket.MessageType, []string) {
	c.T.Helper()
	ws, _, err := c.dial(path, nil, headers...)
	require.NoError(c.T, err, path)
	kind, list := receive(c.T, ws, n)
	return ws, kind, list
}

func receive(t testing.TB, ws *websocket.Conn, n int) (kind websocket.MessageType, list []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Timeout)
	defer cancel()
	for range n {
		k, data, err := ws.Read(ctx)
		require.NoError(t, err)
		if k == websocket.MessageText {
			data = ages.ReplaceAll(data, []byte("age"))
		}
		kind, list = k, append(list, string(data))
	}
	return kind, list
}

// closed reads the rest of a watch and returns its close status.
func closed(t testing.TB, ws *websocket.Conn) websocket.StatusCode {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Timeout)
	defer cancel()
	for {
		if _, _, err := ws.Read(ctx); err != nil {
			require.NoError(t, ctx.Err())
			return websocket.CloseStatus(err)
		}
	}
}

// TestWatchesOverWebSocket checks, for every view and format, that a message equals the event of a
// plain stream.
func TestWatchesOverWebSocket(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	for i := range 9 {
		rev, err := store.Commit(t.Context(), storage.Write{Key: fmt.Sprintf("things/a/%d", i), Value: []byte(`{}`)})
		require.NoError(t, err)
		require.NoError(t, store.Compact(t.Context(), rev))
	}
	c := newConsole(t, apitest.WithStorage(store))
	old := c.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a", "v", "<1>")).ResourceVersion()
	c.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("b"))
	c.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", `{"data":{"v":"2"}}`)
	const initial = "&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
	for _, test := range []struct {
		query  string
		events int
	}{{"", 2}, {"&resourceVersion=" + old, 2}, {"&resourceVersion=0", 2}, {initial, 3}, {"&fieldSelector=metadata.name%3Da", 1}, {"&resourceVersion=1", 1}} {
		for accept, kind := range map[string]websocket.MessageType{
			"application/json": websocket.MessageText,
			"application/json;as=Table;v=v1;g=meta.k8s.io":                 websocket.MessageText,
			"application/vnd.kubernetes.protobuf":                          websocket.MessageBinary,
			"application/vnd.kubernetes.protobuf;stream=watch":             websocket.MessageBinary,
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io": websocket.MessageText,
		} {
			path := apitest.ConfigMapsPath + "?watch=true" + test.query
			want := c.plain(test.events, path, accept)
			ws, got, list := c.messages(test.events, path, "Accept", accept)
			assert.Equal(t, kind, got, accept)
			assert.Equal(t, want, list, "%s %s", test.query, accept)
			if test.query == "&resourceVersion=1" {
				assert.Contains(t, list[0], "ERROR")
				assert.Equal(t, websocket.StatusNormalClosure, closed(t, ws))
			}
		}
	}

	ws, _, got := c.messages(3, apitest.ConfigMapsPath+"?watch=true"+initial)
	assert.Contains(t, got[2], `"BOOKMARK"`)
	assert.Contains(t, got[2], "initial-events-end")
	for i := range 100 {
		c.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", fmt.Sprintf(`{"data":{"v":"n%d"}}`, i))
	}
	_, got = receive(t, ws, 100)
	for i, message := range got {
		var e apitest.Event
		require.NoError(t, json.Unmarshal([]byte(message), &e))
		assert.Equal(t, "MODIFIED a", e.String())
		assert.Equal(t, fmt.Sprint("n", i), apitest.NestedString(e.Object, "data", "v"))
	}
}

// plain returns the first n events of a watch without WebSocket.
func (c console) plain(n int, path, accept string) (list []string) {
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Timeout)
	defer cancel()
	res := c.Open(ctx, "GET", path, nil, "Accept", accept)
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for range n {
		if !strings.Contains(accept, "protobuf") {
			line, err := in.ReadString('\n')
			require.NoError(c.T, err)
			list = append(list, ages.ReplaceAllString(line, "age"))
			continue
		}
		var size [4]byte
		_, err := io.ReadFull(in, size[:])
		require.NoError(c.T, err)
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		_, err = io.ReadFull(in, frame)
		require.NoError(c.T, err)
		list = append(list, string(frame))
	}
	return list
}

// ages matches the cells of tables with the age of an object, in up to two units.
var ages = regexp.MustCompile(`"(\d+[ydhms]){1,2}"`)

// TestWebSocketHandshake checks which credentials and subprotocols are accepted, and the response.
func TestWebSocketHandshake(t *testing.T) {
	t.Parallel()
	users, err := tokenfile.Parse(strings.NewReader("secret,alice,1\n"))
	require.NoError(t, err)
	c := newConsole(t, func(b *server.Builder) {
		b.Authenticators = []auth.Authenticator{users, auth.AnonymousAccess}
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			if a.User.Name == "alice" {
				return auth.Allow, "", nil
			}
			return auth.NoOpinion, "", nil
		})
	})
	const path = apitest.ConfigMapsPath + "?watch=true&timeoutSeconds=1"
	bearer := func(token string) string {
		return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
	}
	for name, test := range map[string]struct {
		protocols []string
		headers   []string
		code      int
		chosen    string
	}{
		"token in a header":            {nil, []string{"Authorization", "Bearer secret"}, 101, ""},
		"one protocol":                 {[]string{"v1"}, []string{"Authorization", "Bearer secret"}, 101, "v1"},
		"two protocols":                {[]string{"v1", "v2"}, []string{"Authorization", "Bearer secret"}, 400, ""},
		"token as protocol":            {[]string{bearer("secret"), "base64.binary.k8s.io"}, nil, 101, "base64.binary.k8s.io"},
		"token after the protocol":     {[]string{"v1", bearer("secret")}, nil, 101, "v1"},
		"token and two protocols":      {[]string{"v1", bearer("secret"), "v2"}, nil, 400, ""},
		"token alone":                  {[]string{bearer("secret")}, nil, 401, ""},
		"token twice":                  {[]string{bearer("secret"), bearer("secret"), "v1"}, nil, 401, ""},
		"a padded token":               {[]string{bearer("secret") + "==", "v1"}, nil, 401, ""},
		"no token":                     {[]string{bearer(""), "v1"}, nil, 401, ""},
		"a token that is no text":      {[]string{bearer("\xff\xfe"), "v1"}, nil, 401, ""},
		"an unknown token":             {[]string{bearer("guess"), "v1"}, nil, 401, ""},
		"an unknown header":            {[]string{"v1"}, []string{"Authorization", "Bearer guess"}, 401, ""},
		"a header besides the token":   {[]string{bearer("guess"), "v1"}, []string{"Authorization", "Bearer secret"}, 400, ""},
		"no user":                      {[]string{"v1"}, nil, 403, ""},
		"no origin":                    {nil, []string{"Authorization", "Bearer secret", "Origin", ""}, 101, ""},
		"a page without an address":    {nil, []string{"Authorization", "Bearer secret", "Origin", "null"}, 403, ""},
		"an origin that is no address": {nil, []string{"Authorization", "Bearer secret", "Origin", "http://%zz"}, 403, ""},
	} {
		ws, res, err := c.dial(path, test.protocols, test.headers...)
		require.NotNil(t, res, "%s: %v", name, err)
		assert.Equal(t, test.code, res.StatusCode, name)
		assert.Equal(t, test.code == 101, err == nil, "%s: %v", name, err)
		if err == nil {
			assert.Equal(t, test.chosen, ws.Subprotocol(), name)
			assert.Equal(t, websocket.StatusNormalClosure, closed(t, ws), name)
		}
	}

	// Invalid parameters are refused before the protocol changes. Requests other than watches
	// ignore the upgrade.
	secret := []string{"Authorization", "Bearer secret"}
	upgrade := append(secret, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version", "13")
	c.Must(400, "GET", path+"&resourceVersion=x", nil, upgrade...)
	assert.Equal(t, "ConfigMapList", c.Must(200, "GET", apitest.ConfigMapsPath, nil, upgrade...).Body["kind"])
	upgrade[len(upgrade)-1] = "12"
	got := c.Do("GET", path, nil, upgrade...)
	assert.Equal(t, 400, got.Code)
	assert.Equal(t, "13", got.Header.Get("Sec-WebSocket-Version"))

	// An in-process request has no connection that could become a WebSocket.
	inside := apitest.InProcess(t, c.s)
	inside.Must(400, "GET", path, nil, upgrade...)
}

// TestWebSocketPeersReleaseSlots checks that clients which send too much, do not read, or go away
// release their slot.
func TestWebSocketPeersReleaseSlots(t *testing.T) {
	t.Parallel()
	c := newConsole(t, func(b *server.Builder) { b.Limits.Watches, b.Limits.RequestTime = 1, time.Second })
	const path = apitest.ConfigMapsPath + "?watch=true"
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Timeout)
	defer cancel()
	// open opens a watch, and waits until the only slot for watches is free.
	open := func(query string) *websocket.Conn {
		for {
			ws, res, err := c.dial(path+query, nil)
			if err == nil {
				return ws
			}
			require.NotNil(t, res, "%v", err)
			require.Contains(t, []int{429, 504}, res.StatusCode)
			require.NoError(t, ctx.Err())
		}
	}
	// put creates an object. On a busy machine a request may exceed RequestTime, after the object
	// was created or before.
	put := func(name, value string) {
		for {
			code := c.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap(name, "v", value)).Code
			if code == 201 || code == 409 {
				return
			}
			require.Equal(t, 504, code)
			require.NoError(t, ctx.Err())
		}
	}

	ws := open("")
	require.NoError(t, ws.Write(ctx, websocket.MessageText, []byte("hello")), "the message is ignored")
	alive := make(chan error, 1)
	go func() { alive <- ws.Ping(ctx) }()
	put("a", "")
	receive(t, ws, 1)
	require.Error(t, func() error { // reading receives the pong; the end of this read ends the watch
		short, stop := context.WithCancel(ctx)
		defer stop()
		go func() { assert.NoError(t, <-alive); stop() }()
		_, _, err := ws.Read(short)
		return err
	}())

	ws = open("") // the client above went away without closing the WebSocket
	require.NoError(t, ws.Close(websocket.StatusNormalClosure, "bye"))

	ws = open("")
	require.NoError(t, ws.Write(ctx, websocket.MessageBinary, make([]byte, 40_000)))
	assert.Equal(t, websocket.StatusMessageTooBig, closed(t, ws))

	ws = open("")
	for ws.Write(ctx, websocket.MessageText, make([]byte, 20_000)) == nil {
	}
	assert.Contains(t, []websocket.StatusCode{websocket.StatusPolicyViolation, -1}, closed(t, ws)) // -1: cut before it was read

	open("") // is never read
	for i := range 30 {
		put(fmt.Sprint("big", i), strings.Repeat("x", 900_000))
	}
	ws = open("&fieldSelector=metadata.name%3Da") // the slot is free again
	require.NoError(t, c.s.Shutdown(ctx))
	assert.Equal(t, websocket.StatusNormalClosure, closed(t, ws), "shutdown closes the WebSocket normally")
}

// TestWebSocketShutdown checks that clients which do not read do not delay Shutdown.
func TestWebSocketShutdown(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	for i := range 30 {
		c.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("big", i), "v", strings.Repeat("x", 900_000)))
	}
	for range 5 {
		_, _, err := c.dial(apitest.ConfigMapsPath+"?watch=true", nil)
		require.NoError(t, err)
	}
	require.NoError(t, c.s.Shutdown(t.Context()))
}

// TestWebSocketIsAuditedAndCounted checks that a watch over WebSocket has an audit record and
// metrics with its code.
func TestWebSocketIsAuditedAndCounted(t *testing.T) {
	t.Parallel()
	policy, err := audit.ParsePolicy([]byte("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, verbs: [watch]}]}"), names.Kubernetes)
	require.NoError(t, err)
	out := &apitest.LogBuffer{}
	log, err := audit.Open(audit.Config{Policy: policy, Sinks: []audit.Sink{audit.Writer{W: out}}, Names: names.Kubernetes})
	require.NoError(t, err)
	metrics := prometheus.NewRegistry()
	c := newConsole(t, func(b *server.Builder) { b.Audit, b.Metrics = log, metrics })
	ws, _, err := c.dial(apitest.ConfigMapsPath+"?watch=true&timeoutSeconds=1", nil)
	require.NoError(t, err)
	assert.Equal(t, websocket.StatusNormalClosure, closed(t, ws))
	require.NoError(t, c.s.Shutdown(t.Context()))
	require.NoError(t, log.Close(t.Context()))
	var stages []string
	for line := range strings.Lines(out.String()) {
		var e apitest.AuditEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		stages = append(stages, fmt.Sprint(e.Stage, " ", e.Verb, " ", e.ResponseStatus.Code))
	}
	assert.Equal(t, []string{"RequestReceived watch 0", "ResponseStarted watch 101", "ResponseComplete watch 101"}, stages)
	page := httptest.NewRecorder()
	promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	assert.Contains(t, page.Body.String(), `apiserver_request_total{code="101",component="apiserver",dry_run="",group="",resource="configmaps",scope="namespace",subresource="",verb="WATCH",version="v1"} 1`)
}

// FuzzSocketProtocols sends arbitrary lists of subprotocols: without a valid token, no request is
// accepted.
func FuzzSocketProtocols(f *testing.F) {
	users, err := tokenfile.Parse(strings.NewReader("secret,alice,1\n"))
	require.NoError(f, err)
	s, _ := apitest.NewErrorFree(f, func(b *server.Builder) { b.Authenticators = []auth.Authenticator{users} })
	for _, seed := range []string{"", "v1", "v1, v2", "base64url.bearer.authorization.k8s.io.AAAA, v1", "base64url.bearer.authorization.k8s.io.=, ,", ",,,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		got := apitest.InProcess(t, s).Do("GET", apitest.ConfigMapsPath+"?watch=true", nil, "Connection", "upgrade", "Upgrade", "WebSocket", "Sec-Websocket-Protocol", list)
		if !strings.Contains(list, "c2VjcmV0") { // secret
			assert.Equal(t, 401, got.Code, "%q", list)
		}
	})
}

// TestEstablishedWatchesHoldNoSeats checks that a watch releases its seat once it is established,
// over each protocol.
func TestEstablishedWatchesHoldNoSeats(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
	for range 3 {
		c.messages(1, apitest.ConfigMapsPath+"?watch=1")
		c.Watch(apitest.ConfigMapsPath + "?watch=1").Next()
	}
	assert.Contains(t, string(c.Must(200, "GET", "/metrics", nil).Raw),
		"\napiserver_flowcontrol_current_executing_requests{flow_schema=\"global-default\",priority_level=\"global-default\"} 1\n", "this one itself")
}
