package proxy_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/nodeagent"
)

// hasAddress sets the address of a pod, and the port of its container, to those of a server.
func (c *cluster) hasAddress(name string, at net.Addr) (ip, port string) {
	ip, port, err := net.SplitHostPort(at.String())
	require.NoError(c.T, err)
	c.Must(201, "POST", apitest.PodsPath, fmt.Sprintf(
		`{"metadata":{"name":%q},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i","ports":[{"name":"web","containerPort":%s}]}]}}`, name, port))
	c.status(name, ip)
	return ip, port
}

func (c *cluster) status(name, ip string) {
	c.Must(200, "PATCH", apitest.PodsPath+"/"+name+"/status", fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%[1]q}]}}`, ip))
}

func TestPodProxy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	plain := newAgent(t, false)
	_, port := c.hasAddress("web", plain.Listener.Addr())
	for path, want := range map[string]string{
		"web/proxy/":                          "GET /",
		"web/proxy/a/b/?x=1&y=%2f&path=z":     "GET /a/b/?x=1&y=%2f&path=z",
		"web/proxy/a/../../b//c/./d/":         "GET /b/c/d/",
		"web/proxy/..%2f..%2fx":               "GET /x",
		"web/proxy/a%0Ab%20c":                 "GET /a%0Ab%20c",
		"web:" + port + "/proxy/x":            "GET /x",
		"web:web/proxy/x":                     "GET /x",
		"http:web:" + port + "/proxy/x?tty=1": "GET /x?tty=1",
	} {
		got := c.Do("GET", apitest.PodsPath+"/"+path, nil, "Authorization", "Basic eDp5", "Accept", "text/html", "Cookie", "a=b")
		assert.Equal(t, want, string(got.Raw), path)
		assert.Equal(t, "yes", got.Header.Get("X-Agent"))
		assert.Empty(t, got.Header.Get("Access-Control-Allow-Origin"))
		assert.Len(t, got.Header.Values("Audit-Id"), 1)
		r := plain.asked(t)
		assert.Equal(t, "127.0.0.1", r.Header.Get("X-Forwarded-For"))
		assert.Equal(t, strings.TrimPrefix(c.Base, "http://"), r.Host)
		assert.Equal(t, []string{"a=b"}, r.Header["Cookie"])
		assert.Equal(t, []string(nil), r.Header["Authorization"])
		head, _, _ := strings.Cut(path, "/proxy/")
		assert.Equal(t, apitest.PodsPath+"/"+head+"/proxy"+r.URL.EscapedPath(), r.Header.Get("X-Forwarded-Uri"))
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		got := c.Must(200, method, apitest.PodsPath+"/web/proxy/x", nil)
		assert.Equal(t, method+" /x", string(got.Raw))
	}
	c.Must(200, "HEAD", apitest.PodsPath+"/web/proxy/x", nil)
	c.Must(405, "TRACE", apitest.PodsPath+"/web/proxy/x", nil)
	assert.Equal(t, apitest.PodsPath+"/web/proxy/?x=1", c.Do("GET", apitest.PodsPath+"/web/proxy?x=1", nil).Header.Get("Location"))
	assert.Equal(t, "POST /", string(c.Do("POST", apitest.PodsPath+"/web/proxy", nil).Raw))
	c.tunnel(c.upgrade(t.Context(), "GET", apitest.PodsPath+"/web/proxy/socket"))
	c.tunnel(c.upgrade(t.Context(), "GET", apitest.PodsPath+"/web/proxy")) // WebSocket clients do not follow redirects
	assert.Equal(t, 500, c.Do("GET", apitest.PodsPath+"/web/proxy/code200", nil, "Connection", "Upgrade", "Upgrade", "x").Code)
	for to, want := range map[string]string{
		"/foo/bar?x=1":                           apitest.PodsPath + "/web/proxy/foo/bar?x=1",
		plain.URL + "/foo/":                      apitest.PodsPath + "/web/proxy/foo/",
		apitest.PodsPath + "/web/proxy/y":        apitest.PodsPath + "/web/proxy/y",
		"rel/x":                                  "rel/x",
		"http://elsewhere/foo":                   "http://elsewhere/foo",
		"/../../../../../../api/v1/namespaces/x": apitest.PodsPath + "/web/proxy/api/v1/namespaces/x",
	} {
		assert.Equal(t, want, c.Do("GET", apitest.PodsPath+"/web/proxy/code302?to="+to, nil).Header.Get("Location"), to)
	}
	for path, want := range map[string]string{
		"gone/proxy/x":       `404 pods "gone" not found`,
		"one/proxy/x":        "400 address not allowed",
		"ftp:web:80/proxy/x": `400 invalid pod request "ftp:web:80"`,
		"a:b:c:d/proxy/x":    `400 invalid pod request "a:b:c:d"`,
		"web:none/proxy/x":   `400 invalid pod request "web:none"`,
		"web:+1/proxy/x":     `400 invalid pod request "web:+1"`,
		"web:65536/proxy/x":  "503 error trying to reach service: dial tcp: address 65536: invalid port",
	} {
		got := c.Do("GET", apitest.PodsPath+"/"+path, nil)
		assert.Equal(t, want, fmt.Sprint(got.Code, " ", got.Body["message"]), path)
	}
	plain.Close()
	got := c.Must(503, "GET", apitest.PodsPath+"/web/proxy/x", nil)
	assert.Contains(t, got.Body["message"], "error trying to reach service: dial tcp 127.0.0.1:")
}

// TestProxyRefusesLocalAddresses: the address of a pod or node must not lead to the server itself or its link-local
// network.
func TestProxyRefusesLocalAddresses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(b *server.Builder) { b.Connector = nodeagent.New(nodeagent.Config{}) })
	plain := newAgent(t, false)
	_, port := c.hasAddress("web", plain.Listener.Addr())
	for _, ip := range []string{"127.0.0.1", "127.8.8.8", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "224.0.0.1"} {
		answer := c.Do("PATCH", apitest.PodsPath+"/web/status", fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%[1]q}]}}`, ip))
		if answer.Code != 200 {
			continue // not a valid address of a pod
		}
		for _, name := range []string{"web", "https:web:" + port} {
			got := c.Must(400, "GET", apitest.PodsPath+"/"+name+"/proxy/x", nil)
			assert.Equal(t, "address not allowed", got.Body["message"], ip)
		}
	}
	for _, name := range []string{"n", "n:1", "http:n:" + port} {
		got := c.Must(400, "GET", "/api/v1/nodes/"+name+"/proxy/x", nil)
		assert.Equal(t, "address not allowed", got.Body["message"], name)
	}
	assert.Empty(t, plain.got)
	assert.Empty(t, c.got)
}

func TestNodeProxy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	plain := newAgent(t, false)
	_, port, _ := net.SplitHostPort(plain.Listener.Addr().String())
	_, own, _ := net.SplitHostPort(c.Listener.Addr().String())
	for _, name := range []string{"n", "n:", "http:n:", "n:" + own, "https:n:" + own} {
		got := c.Must(200, "GET", "/api/v1/nodes/"+name+"/proxy/stats/summary?x=1", nil)
		assert.Equal(t, "GET /stats/summary?x=1", string(got.Raw))
		assert.Len(t, c.asked(t).TLS.PeerCertificates, 1)
	}
	c.Must(200, "GET", "/api/v1/nodes/http:n:"+port+"/proxy/x", nil)
	assert.Nil(t, plain.asked(t).TLS)
	for name, want := range map[string]string{
		"gone":        `404 nodes "gone" not found`,
		"n:none":      `400 invalid node request "n:none"`,
		"https:n:web": `400 invalid node request "https:n:web"`,
		"n:-1":        `400 invalid node request "n:-1"`,
		"n:65536":     "503 error trying to reach service: dial tcp: address 65536: invalid port",
	} {
		got := c.Do("GET", "/api/v1/nodes/"+name+"/proxy/x", nil)
		assert.Equal(t, want, fmt.Sprint(got.Code, " ", got.Body["message"]), name)
	}
	assert.Empty(t, c.got)
	c.Must(201, "POST", "/api/v1/nodes", `{"metadata":{"name":"bare"}}`)
	got := c.Do("GET", "/api/v1/nodes/bare/proxy/x", nil)
	assert.Equal(t, "500 no preferred addresses found; known addresses: []", fmt.Sprint(got.Code, " ", got.Body["message"]))
}

// instead is a Connector that connects to a fixed server and records the target.
type instead struct {
	*http.Transport
	url  string
	host string // host of the last target
}

func (c *instead) Connect(_ context.Context, to *registry.Target) (*url.URL, http.RoundTripper, error) {
	c.host = to.URL.Host
	at, err := url.Parse(c.url)
	return at, c, err
}

func TestServiceProxy(t *testing.T) {
	t.Parallel()
	connector := &instead{Transport: &http.Transport{DisableKeepAlives: true}}
	c := newCluster(t, func(b *server.Builder) { b.Connector = connector })
	connector.url = newAgent(t, false).URL
	c.pod("web", "n", "c")
	c.status("web", "192.0.2.6")
	const services = "/api/v1/namespaces/default/services"
	c.Must(201, "POST", services, `{"metadata":{"name":"svc"},"spec":{"ports":[{"name":"web","port":80},{"name":"other","port":81}]}}`)
	endpoints := func(ref string) string {
		return fmt.Sprintf(`{"metadata":{"name":"svc"},"subsets":[{"addresses":[{"ip":"192.0.2.6"%s}],"ports":[{"name":"web","port":8080}]}]}`, ref)
	}
	c.Must(201, "POST", "/api/v1/namespaces/default/endpoints", endpoints(""))
	none := c.Must(503, "GET", services+"/svc:web/proxy/x", nil)
	assert.Equal(t, `no endpoints available for service "svc:web"`, none.Body["message"]) // the service has no pods
	c.Must(200, "PUT", "/api/v1/namespaces/default/endpoints/svc", endpoints(`,"targetRef":{"kind":"Pod","namespace":"default","name":"web"}`))
	for _, name := range []string{"svc:web", "svc:80", "http:svc:web"} {
		got := c.Must(200, "GET", services+"/"+name+"/proxy/x?y=1", nil)
		assert.Equal(t, "GET /x?y=1", string(got.Raw))
		assert.Equal(t, "192.0.2.6:8080", connector.host)
	}
	for name, want := range map[string]string{
		"svc":       `503 no endpoints available for service "svc"`,
		"svc:other": `503 no endpoints available for service "svc:other"`,
		"svc:none":  `503 no endpoints available for service "svc:none"`,
		"svc:65536": `503 no service port 65536 found for service "svc"`,
		"svc:82":    `503 no service port 82 found for service "svc"`,
		"gone":      `404 services "gone" not found`,
		"ftp:svc:1": `400 invalid service request "ftp:svc:1"`,
	} {
		got := c.Do("GET", services+"/"+name+"/proxy/x", nil)
		assert.Equal(t, want, fmt.Sprint(got.Code, " ", got.Body["message"]), name)
	}
	c.status("web", "192.0.2.7") // the address of the pod has changed
	c.Must(503, "GET", services+"/svc:web/proxy/x", nil)
}

// TestManyEndpointsAreBounded: a service with many endpoints does not cost the product of its ports and addresses,
// nor a pod lookup for each address.
func TestManyEndpointsAreBounded(t *testing.T) {
	c := newCluster(t)
	c.Must(201, "POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"svc"},"spec":{"ports":[{"name":"web","port":80}]}}`)
	var addresses, ports []string
	for i := range 500 {
		addresses = append(addresses, fmt.Sprintf(`{"ip":"192.0.2.%d","targetRef":{"kind":"Pod","namespace":"default","name":"one"}}`, i%250+1))
		ports = append(ports, fmt.Sprintf(`{"name":"web","port":%d}`, i+1))
	}
	c.Must(201, "POST", "/api/v1/namespaces/default/endpoints",
		`{"metadata":{"name":"svc"},"subsets":[{"addresses":[`+strings.Join(addresses, ",")+`],"ports":[`+strings.Join(ports, ",")+`]}]}`)
	for what, ask := range map[string]func(){
		"proxy": func() { c.Must(503, "GET", "/api/v1/namespaces/default/services/svc:web/proxy/", nil) },
		"table": func() {
			got := c.Must(200, "GET", "/api/v1/namespaces/default/endpoints", nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
			assert.Contains(t, string(got.Raw), "192.0.2.1:1,192.0.2.2:1,192.0.2.3:1 + 249997 more...")
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ask()
		runtime.ReadMemStats(&after)
		assert.Less(t, after.Mallocs-before.Mallocs, uint64(100_000), what) // fewer than pairs of port and address
	}
}

// TestProxyRemovesIdentityHeaders: headers that authenticators trust are not forwarded.
func TestProxyRemovesIdentityHeaders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(b *server.Builder) {
		front, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{Roots: x509.NewCertPool(), UserHeaders: []string{"X-Who"},
			UIDHeaders: []string{"X-Who-UID"}, GroupHeaders: []string{"X-In"}, ExtraPrefixes: []string{"X-More-"}})
		require.NoError(t, err)
		b.Authenticators = []auth.Authenticator{auth.Union(front), auth.AnonymousAccess}
	})
	plain := newAgent(t, false)
	c.hasAddress("web", plain.Listener.Addr())
	headers := []string{"X-Who", "root", "X-Who-Uid", "1", "X-In", "system:masters", "X-More-Scopes", "all", "X-Remote-User", "root", "Impersonate-User", ""}
	c.Must(200, "GET", apitest.PodsPath+"/web/proxy/x", nil, append(headers, "X-Else", "yes")...)
	h := plain.asked(t).Header
	assert.Equal(t, "yes", h.Get("X-Else"))
	for i := 0; i < len(headers); i += 2 {
		assert.NotContains(t, h, headers[i])
	}
}
