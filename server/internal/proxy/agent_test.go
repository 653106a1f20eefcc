package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/nodeagent"
	"orch.io/controlplane/server/servertest"
)

// agent is the agent of a node. It responds to each request with the request, except for /containerLogs and upgrades,
// where the response depends on the container name.
type agent struct {
	*httptest.Server
	got  chan *http.Request
	more chan string // lines of followed logs; closed at their end
	left chan struct{}
}

func newAgent(t testing.TB, secure bool) *agent {
	a := &agent{got: make(chan *http.Request, 100), more: make(chan string), left: make(chan struct{}, 10)}
	a.Server = httptest.NewUnstartedServer(a)
	if secure {
		a.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		a.StartTLS()
	} else {
		a.Start()
	}
	t.Cleanup(a.Close)
	return a
}

// asked is the request that the agent received, as its response shows it.
func (a *agent) asked(t testing.TB) *http.Request {
	t.Helper()
	select {
	case r := <-a.got:
		return r
	default:
		t.Fatal("the agent was not asked")
		return nil
	}
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.got <- r
	var code int
	if n, _ := fmt.Sscanf(r.URL.Path[strings.LastIndex(r.URL.Path, "/"):], "/code%d", &code); n == 1 {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(code)
		fmt.Fprintf(w, "agent says %d", code)
		return
	}
	switch {
	case r.Header.Get("Upgrade") != "":
		a.echo(w, r)
	case r.URL.Query().Get("follow") == "true":
		defer func() { a.left <- struct{}{} }()
		a.follow(w, r)
	default:
		w.Header().Set("X-Agent", "yes")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		fmt.Fprintf(w, "%s %s", r.Method, r.URL)
	}
}

func (a *agent) follow(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line, ok := <-a.more:
			if !ok {
				return
			}
			fmt.Fprintln(w, line)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// echo switches to a protocol that returns its input in capitals.
func (a *agent) echo(w http.ResponseWriter, r *http.Request) {
	defer func() { a.left <- struct{}{} }()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	for {
		line, err := buffered.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprint(conn, strings.ToUpper(line))
	}
}

// cluster is a server with pods and with nodes, one of which has an agent.
type cluster struct {
	*apitest.Client
	*agent
	s *servertest.Server
}

func newCluster(t testing.TB, configure ...func(*server.Builder)) *cluster {
	a := newAgent(t, true)
	roots := a.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	connector := nodeagent.New(nodeagent.Config{TLS: &tls.Config{RootCAs: roots, Certificates: a.TLS.Certificates}, Loopback: true})
	s := servertest.New(t, append([]func(*server.Builder){func(b *server.Builder) { b.Connector = connector }}, configure...)...)
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(client.CloseIdleConnections)
	c := &cluster{apitest.NewClient(t, s.URL(), client), a, s}
	c.node("n", a.Listener.Addr())
	c.pod("one", "n", "c")
	return c
}

// node creates a node whose agent listens at an address.
func (c *cluster) node(name string, at net.Addr) {
	host, port, err := net.SplitHostPort(at.String())
	require.NoError(c.T, err)
	c.Must(201, "POST", "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	c.Must(200, "PATCH", "/api/v1/nodes/"+name+"/status", fmt.Sprintf(
		`{"status":{"addresses":[{"type":"InternalIP","address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}}}`, host, port))
}

// pod creates a pod with several containers on a node.
func (c *cluster) pod(name, node string, containers ...string) {
	var list []string
	for _, container := range containers {
		list = append(list, fmt.Sprintf(`{"name":%q,"image":"i"}`, container))
	}
	c.Must(201, "POST", apitest.PodsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"nodeName":%q,"initContainers":[{"name":"init","image":"i"}],"containers":[%s]}}`,
		name, node, strings.Join(list, ",")))
}

func TestLogIsRequestedFromKubelet(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.pod("codes", "n", "code302", "code400", "code403", "code404", "code500")
	c.pod("waits", "", "c")
	c.pod("lost", "gone", "c")
	for path, want := range map[string]string{
		"one/log":                   "GET /containerLogs/default/one/c",
		"one/log?container=init":    "GET /containerLogs/default/one/init",
		"waits/log?container=":      "",
		"one/log?follow=0&pretty=1": "GET /containerLogs/default/one/c",
		"one/log?previous=1&timestamps=true&sinceSeconds=4&tailLines=0&limitBytes=7&insecureSkipTLSVerifyBackend=1": "GET /containerLogs/default/one/c?limitBytes=7&previous=true&sinceSeconds=4&tailLines=0&timestamps=true",
		"one/log?sinceTime=2020-01-01T00:00:00Z": "GET /containerLogs/default/one/c?sinceTime=2020-01-01T00%3A00%3A00Z",
	} {
		got := c.Do("GET", apitest.PodsPath+"/"+path, nil, "Authorization", "Basic eDp5", "Accept", "application/json, */*")
		assert.Equal(t, want, string(got.Raw), path)
		if want == "" {
			assert.Equal(t, 204, got.Code, path)
			continue
		}
		assert.Equal(t, 200, got.Code, path)
		assert.Equal(t, "text/plain", got.Header.Get("Content-Type"))
		assert.Empty(t, got.Header.Get("X-Agent"))
		r := c.asked(t)
		assert.Empty(t, r.Header.Get("Authorization"))
		assert.Len(t, r.TLS.PeerCertificates, 1)
	}
	for path, want := range map[string]string{
		"gone/log":                            `404 pods "gone" not found`,
		"lost/log":                            `404 pods "gone" not found`,
		"one/log?container=x":                 "400 container x is not valid for pod one",
		"codes/log":                           "400 a container name must be specified for pod codes, choose one of: [init code302 code400 code403 code404 code500]",
		"one/log?tailLines=-1":                `422 PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0`,
		"one/log?limitBytes=0&sinceSeconds=0": `422 PodLogOptions "one" is invalid: [limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0]`,
		"one/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z": "422 PodLogOptions \"one\" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
		"one/log?stream=All":          `422 PodLogOptions "one" is invalid: stream: Forbidden: may not be specified`,
		"one/log?tailLines=x":         `400 strconv.ParseInt: parsing "x": invalid syntax`,
		"codes/log?container=code302": "302 the server responded with the status code 302 but did not return more information ( pods/log codes)",
		"codes/log?container=code400": "400 agent says 400",
		"codes/log?container=code403": "403 agent says 403 ( pods/log codes)",
		"codes/log?container=code404": "404 the server could not find the requested resource ( pods/log codes)",
		"codes/log?container=code500": "500 Internal error occurred: agent says 500",
		"one/log/x":                   "404 the server could not find the requested resource",
	} {
		got := c.Do("GET", apitest.PodsPath+"/"+path, nil)
		assert.Equal(t, want, fmt.Sprint(got.Code, " ", got.Body["message"]), path)
	}
	assert.Equal(t, 405, c.Do("POST", apitest.PodsPath+"/one/log", nil).Code)
	c.Server.Close()
	got := c.Do("GET", apitest.PodsPath+"/one/log", nil)
	assert.Equal(t, 500, got.Code)
	assert.Contains(t, got.Body["message"], `Get "https://127.0.0.1:`)
}

// TestFollowedLogIsStreamed: each line reaches the client when it is written, and the agent is notified when the
// client disconnects.
func TestFollowedLogIsStreamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	res := c.Open(ctx, "GET", apitest.PodsPath+"/one/log?follow=true", nil)
	lines := bufio.NewScanner(res.Body)
	for _, line := range []string{"a", "b"} {
		c.more <- line
		require.True(t, lines.Scan())
		assert.Equal(t, line, lines.Text())
	}
	cancel()
	<-c.left

	res = c.Open(t.Context(), "GET", apitest.PodsPath+"/one/log?follow=true", nil)
	require.NoError(t, c.s.Shutdown(t.Context()))
	<-c.left
	text, err := io.ReadAll(res.Body)
	assert.NoError(t, err)
	assert.Empty(t, text)
}

// TestAgentCertificateIsVerified: an agent with a certificate of another authority gets no request, unless the caller
// disables the verification.
func TestAgentCertificateIsVerified(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(b *server.Builder) {
		b.Connector = nodeagent.New(nodeagent.Config{TLS: &tls.Config{RootCAs: x509.NewCertPool()}})
	})
	got := c.Do("GET", apitest.PodsPath+"/one/log", nil)
	assert.Equal(t, 500, got.Code)
	assert.Contains(t, got.Body["message"], "certificate signed by unknown authority")
	assert.Empty(t, c.got)
}

func TestRequestWithoutConnectorIs503(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(b *server.Builder) { b.Connector = nil })
	for _, path := range []string{apitest.PodsPath + "/one/log", apitest.PodsPath + "/one/exec?command=x", apitest.PodsPath + "/one/proxy/x"} {
		got := c.Must(503, "GET", path, nil)
		assert.Equal(t, "this server has no Connector to nodes and pods", got.Body["message"])
	}
}
