package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

// upgrade sends a request for another protocol.
func (c *cluster) upgrade(ctx context.Context, method, path string, headers ...string) *http.Response {
	c.T.Helper()
	return c.Open(ctx, method, path, nil, append([]string{"Connection", "Upgrade", "Upgrade", "SPDY/3.1"}, headers...)...)
}

// tunnel sends and receives a word through an upgraded connection.
func (c *cluster) tunnel(res *http.Response) io.ReadWriteCloser {
	c.T.Helper()
	require.Equal(c.T, 101, res.StatusCode)
	conn := res.Body.(io.ReadWriteCloser)
	c.T.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintln(conn, "ping")
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(c.T, err)
	require.Equal(c.T, "PING\n", line)
	return conn
}

func TestStreamsAreRequestedFromKubelet(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, method := range []string{"GET", "POST"} {
		for path, want := range map[string]string{
			"exec?command=ls&command=-l+x&stdin=1&stdout=true&stderr=false&tty=1": "/exec/default/one/c?command=ls&command=-l+x&input=1&output=1&tty=1",
			"exec?container=init&stderr=1":                                        "/exec/default/one/init?error=1",
			"attach?stdout=1":                                                     "/attach/default/one/c?output=1",
			"portforward":                                                         "/portForward/default/one",
			"portforward?ports=80&ports=81,82":                                    "/portForward/default/one?port=80%2C81%2C82",
		} {
			res := c.upgrade(t.Context(), method, apitest.PodsPath+"/one/"+path, "Authorization", "Basic eDp5", "X-Forwarded-For", "1.2.3.4",
				"X-Remote-User", "root", "X-Stream-Protocol-Version", "v4.channel.k8s.io")
			assert.Equal(t, "SPDY/3.1", res.Header.Get("Upgrade"))
			conn := c.tunnel(res)
			r := c.asked(t)
			assert.Equal(t, method+" "+want, r.Method+" "+r.URL.String())
			assert.Equal(t, "v4.channel.k8s.io", r.Header.Get("X-Stream-Protocol-Version"))
			assert.Equal(t, "1.2.3.4, 127.0.0.1", r.Header.Get("X-Forwarded-For"))
			for _, name := range []string{"Authorization", "X-Remote-User"} {
				assert.Empty(t, r.Header.Get(name))
			}
			require.NoError(t, conn.Close())
			<-c.left // the connection to the agent ends when the client disconnects
		}
	}
}

func TestStreamsAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.pod("codes", "n", "code200", "code403")
	c.pod("waits", "", "c")
	c.pod("lost", "gone", "c")
	for path, want := range map[string]string{
		"waits/portforward":            "400 pod waits does not have a host assigned",
		"lost/attach":                  `404 pods "gone" not found`,
		"gone/exec":                    `404 pods "gone" not found`,
		"codes/exec":                   "400 a container name must be specified for pod codes, choose one of: [init code200 code403]",
		"one/portforward?ports=x":      `400 strconv.ParseInt: parsing "x": invalid syntax`,
		"codes/exec?container=code200": "500 invalid upgrade response: status code 200",
		"one/exec/c":                   "404 the server could not find the requested resource",
	} {
		got := c.Do("POST", apitest.PodsPath+"/"+path, nil, "Connection", "Upgrade", "Upgrade", "SPDY/3.1")
		assert.Equal(t, want, fmt.Sprint(got.Code, " ", got.Body["message"]), path)
	}
	got := c.Must(400, "POST", apitest.PodsPath+"/one/exec?command=x", nil)
	assert.Equal(t, "Upgrade request required", got.Body["message"])
	said := c.Do("POST", apitest.PodsPath+"/codes/exec?container=code403", nil, "Connection", "Upgrade", "Upgrade", "SPDY/3.1")
	assert.Equal(t, "403 agent says 403", fmt.Sprint(said.Code, " ", string(said.Raw)))
	c.Must(405, "PUT", apitest.PodsPath+"/one/exec", nil)
	c.Server.Close()
	down := c.Do("POST", apitest.PodsPath+"/one/exec", nil, "Connection", "Upgrade", "Upgrade", "SPDY/3.1")
	assert.Equal(t, 500, down.Code)
	assert.Contains(t, down.Body["message"], "error dialing backend: dial tcp 127.0.0.1:")
}

// TestStreamsRequireTheRightToCreate: the right to create is required even for a GET.
func TestStreamsRequireTheRightToCreate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(b *server.Builder) {
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			if a.Subresource == "exec" && a.Verb == "create" {
				return auth.Deny, "", nil
			}
			return auth.Allow, "", nil
		})
	})
	for _, method := range []string{"GET", "POST"} {
		got := c.Do(method, apitest.PodsPath+"/one/exec", nil, "Connection", "Upgrade", "Upgrade", "websocket")
		assert.Equal(t, 403, got.Code)
		assert.Contains(t, got.Body["message"], `cannot create resource "pods/exec"`)
	}
	c.tunnel(c.upgrade(t.Context(), "GET", apitest.PodsPath+"/one/attach"))
}

// TestStreamsEndWhenServerStops: idle streams end when the server stops.
func TestStreamsEndWhenServerStops(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	conn := c.tunnel(c.upgrade(t.Context(), "POST", apitest.PodsPath+"/one/exec"))
	require.NoError(t, c.s.Shutdown(t.Context()))
	<-c.left
	_, err := conn.Read(make([]byte, 1))
	assert.Error(t, err)
}

// TestConnectionsAreLimited: connections have their own limit, separate from watches, and a single user cannot take
// all of them.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	c := newCluster(t, apitest.AuthenticateByHeader, func(b *server.Builder) {
		b.Authenticators = append(b.Authenticators, auth.AnonymousAccess)
		b.Limits.Connections, b.Limits.Watches = 8, 1
	})
	open := func(user string) bool {
		res := c.upgrade(t.Context(), "POST", apitest.PodsPath+"/one/exec", "X-User", user, "X-Group", "x")
		if res.StatusCode == http.StatusTooManyRequests {
			assert.NoError(t, res.Body.Close())
			return false
		}
		c.tunnel(res)
		return true
	}
	n := 0
	for open("a") {
		n++
	}
	assert.Contains(t, []int{1, 2, 3}, n)
	assert.True(t, open("b"))
	c.Watch(apitest.ConfigMapsPath+"?watch=1", "X-User", "a", "X-Group", "x")
}
