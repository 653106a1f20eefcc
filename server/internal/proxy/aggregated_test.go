package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/server/serving"
	"orch.io/controlplane/storage/memstore"
)

// Berth is a kind that an extension server serves.
type Berth struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            BerthSpec `json:"spec"`
}

// BerthSpec is the spec of a Berth.
type BerthSpec struct {
	Length int `json:"length" schema:"min=1" doc:"Length of the longest ship, in metres."`
}

const (
	berthAPI   = "/apis/harbor.example.com/v1"
	berths     = berthAPI + "/namespaces/default/berths"
	apiService = "/apis/apiregistration.k8s.io/v1/apiservices"
	harborName = "v1.harbor.example.com"

	berthDefinition = "io.orch.controlplane.server.internal.proxy_test.Berth"
)

// harbor is a server with an extension server.
type harbor struct {
	*apitest.Client
	front *servertest.Server
	ca    *serving.Authority // of both servers

	mu    sync.Mutex // guards the fields below
	where server.Endpoint
	shown *tls.Certificate
}

// leads makes the service resolve to a server.
func (h *harbor) leads(e server.Endpoint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.where = e
}

func (h *harbor) find(_ context.Context, of server.Service) (server.Endpoint, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of != (server.Service{Namespace: "harbor", Name: "berths", Port: 443}) {
		return server.Endpoint{}, nil
	}
	return h.where, nil
}

// certificate is the client certificate of the front server for extension servers.
func (h *harbor) certificate() (*tls.Certificate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shown != nil {
		return h.shown, nil
	}
	cert, key, err := h.ca.Client("front-proxy")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	h.shown = &pair
	return h.shown, err
}

// newHarbor returns a server without extension servers.
func newHarbor(t *testing.T, configure ...func(*server.Builder)) *harbor {
	t.Helper()
	ca, err := serving.NewAuthority("harbor")
	require.NoError(t, err)
	h := &harbor{ca: ca}
	h.front = servertest.New(t, append(slices.Clone(configure), func(b *server.Builder) {
		b.ServiceResolver, b.Serving.ProxyCertificate = h.find, h.certificate
	})...)
	h.Client = apitest.NewClient(t, h.front.Host(), h.front.As("admin", auth.Masters).Client())
	return h
}

// listen serves a handler over TLS with a certificate of the service.
func (h *harbor) listen(handler http.Handler) *httptest.Server { return h.listenBy(handler, true) }

func (h *harbor) listenBy(handler http.Handler, http2 bool) *httptest.Server {
	h.T.Helper()
	config, err := h.ca.TLS("berths.harbor.svc")
	require.NoError(h.T, err)
	config.ClientAuth = tls.RequestClientCert
	if !http2 {
		config.NextProtos = []string{"http/1.1"}
	}
	web := httptest.NewUnstartedServer(handler)
	web.TLS, web.EnableHTTP2 = config, http2
	web.StartTLS()
	h.T.Cleanup(web.Close)
	h.T.Cleanup(web.CloseClientConnections)
	h.leads(server.Endpoint{Address: web.Listener.Addr().String()})
	return web
}

// register creates the APIService and waits until it was probed.
func (h *harbor) register() {
	h.T.Helper()
	h.Must(201, "POST", apiService, h.apiService())
	h.settle()
}

// apiService returns the body of the APIService.
func (h *harbor) apiService() map[string]any {
	return map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": harborName},
		"spec": map[string]any{
			"group": "harbor.example.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
			"service": map[string]any{"namespace": "harbor", "name": "berths"}, "caBundle": h.ca.PEM(),
		},
	}
}

// settle waits until the controllers have no more work.
func (h *harbor) settle() { h.front.Settle() }

// condition returns status, reason and message of the condition Available.
func (h *harbor) condition(name string) []string {
	h.T.Helper()
	list, _ := apitest.Nested(h.Must(200, "GET", apiService+"/"+name, nil).Body, "status", "conditions").([]any)
	require.Len(h.T, list, 1)
	return []string{apitest.NestedString(list[0], "status"), apitest.NestedString(list[0], "reason"), apitest.NestedString(list[0], "message")}
}

// back returns a server with the kind Berth that trusts the identity headers of the front server.
func (h *harbor) back(configure ...func(*server.Builder)) *servertest.Server {
	h.T.Helper()
	proxy, err := clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{
		Roots: h.ca.Pool(), AllowedNames: []string{"front-proxy"}, UserHeaders: []string{"X-Remote-User"}, UIDHeaders: []string{"X-Remote-Uid"},
		GroupHeaders: []string{"X-Remote-Group"}, ExtraPrefixes: []string{"X-Remote-Extra-"},
	})
	require.NoError(h.T, err)
	return servertest.New(h.T, append(slices.Clone(configure), func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[Berth]{Group: "harbor.example.com", Version: "v1", Kind: "Berth", ShortNames: []string{"bt"}}))
		b.Authenticators = []auth.Authenticator{proxy}
	})...)
}

func newBerthBody(name string, length int) map[string]any {
	return map[string]any{"apiVersion": "harbor.example.com/v1", "kind": "Berth", "metadata": map[string]any{"name": name}, "spec": map[string]any{"length": length}}
}

// TestAggregatedObjects: every verb is forwarded to an extension server, in process and over TLS.
func TestAggregatedObjects(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"in process", "tls"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := newHarbor(t)
			if back := h.back(); way == "tls" {
				h.listen(back)
			} else {
				h.leads(server.Endpoint{Handler: back})
			}
			assert.Equal(t, 404, h.Do("GET", berths, nil).Code)
			h.register()
			assert.Equal(t, []string{"True", "Passed", "all checks passed"}, h.condition(harborName))
			w := h.Watch(berths + "?watch=1")
			made := h.Must(201, "POST", berths, newBerthBody("east", 100))
			assert.Equal(t, "ADDED east", w.Next().String())
			h.Must(409, "POST", berths, newBerthBody("east", 100))
			h.Must(422, "POST", berths, newBerthBody("west", 0))
			h.Must(200, "PATCH", berths+"/east", `{"spec":{"length":120}}`)
			assert.EqualValues(t, 120, apitest.Nested(w.Next().Object, "spec", "length"))
			made = h.Must(200, "GET", berths+"/east", nil)
			made.Body["spec"] = map[string]any{"length": 130}
			h.Must(200, "PUT", berths+"/east", made.Body)
			applied := newBerthBody("north", 50)
			res := h.Do("PATCH", berths+"/north?fieldManager=me", applied, "Content-Type", "application/apply-patch+yaml")
			require.Less(t, res.Code, 400, string(res.Raw))
			assert.Equal(t, []string{"east", "north"}, h.Must(200, "GET", berths, nil).Names())
			assert.Equal(t, []string{"east"}, h.Must(200, "GET", berthAPI+"/berths?fieldSelector=metadata.name%3Deast", nil).Names())
			table := h.Must(200, "GET", berths, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
			assert.Equal(t, "Table", table.Body["kind"])
			h.Must(200, "DELETE", berths+"/east", nil)
			h.Must(404, "GET", berths+"/east", nil)
			w.Close()
		})
	}
}

// TestAggregatedIdentity: an extension server gets the user of the request, which this server authorizes first.
// Identity headers of the client are not forwarded.
func TestAggregatedIdentity(t *testing.T) {
	t.Parallel()
	h := newHarbor(t, servertest.RBAC)
	var mu sync.Mutex
	var seen []*http.Request
	back := h.back(func(b *server.Builder) {
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			if a.User.Name == auth.Anonymous || a.Verb == "delete" {
				return auth.Deny, "not here", nil
			}
			return auth.Allow, "", nil
		})
	})
	h.listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Clone(context.Background()))
		mu.Unlock()
		back.ServeHTTP(w, r)
	}))
	h.register()
	h.Must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"berths"},
		"rules":[{"apiGroups":["harbor.example.com"],"resources":["berths"],"verbs":["get","list","create","delete"]}]}`)
	h.Must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"berths"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"berths"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}`)
	jane := apitest.NewClient(t, h.front.Host(), h.front.As("jane", "sailors", "Mates").Client())
	mu.Lock()
	seen = nil
	mu.Unlock()
	jane.Must(201, "POST", berths, newBerthBody("east", 100), "X-Remote-User", "admin", "X-Remote-Group", auth.Masters, "X-Remote-Extra-Scopes", "all",
		"Connection", "X-Remote-User", "Cookie", "a=b")
	refused := jane.Must(403, "PATCH", berths+"/east", `{"spec":{"length":1}}`)
	assert.Contains(t, string(refused.Raw), `cannot patch resource \"berths\" in API group \"harbor.example.com\"`)
	assert.Contains(t, string(jane.Must(403, "DELETE", berths+"/east", nil).Raw), "not here")
	mu.Lock()
	require.Len(t, seen, 2)
	got := seen[0]
	mu.Unlock()
	assert.Equal(t, []string{"jane"}, got.Header["X-Remote-User"])
	assert.Equal(t, []string{"sailors", "Mates", auth.Authenticated}, got.Header["X-Remote-Group"])
	assert.Empty(t, got.Header["X-Remote-Extra-Scopes"])
	assert.Empty(t, got.Header["Authorization"])
	assert.Equal(t, []string{"a=b"}, got.Header["Cookie"])
	assert.Equal(t, "berths.harbor.svc:443", got.Host)
	h.Must(200, "GET", berths, nil, "Impersonate-User", "jane", "Impersonate-Extra-Key/One", "v")
	mu.Lock()
	got = seen[len(seen)-1]
	mu.Unlock()
	assert.Equal(t, []string{"jane"}, got.Header["X-Remote-User"])
	assert.Equal(t, []string{"v"}, got.Header["X-Remote-Extra-Key%2fone"])
	assert.Empty(t, got.Header["Impersonate-User"])
	h.Must(403, "GET", berths, nil, "Impersonate-User", "jane", "Impersonate-Group", "a\tb")
}

// TestAggregatedDiscovery: discovery and the OpenAPI documents include the versions of extension servers, sorted by
// priority.
func TestAggregatedDiscovery(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	h.leads(server.Endpoint{Handler: h.back()})
	h.front.InstallCRDs(widgetFiles())
	h.register()
	var names []string
	list, _ := h.Must(200, "GET", "/apis", nil).Body["groups"].([]any)
	for _, g := range list {
		names = append(names, apitest.NestedString(g, "name"))
	}
	assert.Equal(t, []string{"apiregistration.k8s.io", "apps", "events.k8s.io"}, names[:3])
	assert.Equal(t, []string{"harbor.example.com", "example.com"}, names[len(names)-2:])
	h.Must(200, "PATCH", apiService+"/"+harborName, `{"spec":{"groupPriorityMinimum":19000}}`)
	h.settle()
	for _, version := range []string{"v2", "v2beta1"} {
		doc := h.Must(200, "GET", "/apis", nil, "Accept", "application/json;g=apidiscovery.k8s.io;v="+version+";as=APIGroupDiscoveryList")
		items, _ := doc.Body["items"].([]any)
		assert.Equal(t, "harbor.example.com", apitest.NestedString(items[1], "metadata", "name"))
		v := apitest.Nested(items[1], "versions").([]any)[0]
		assert.Equal(t, "Current", apitest.NestedString(v, "freshness"))
		resource := apitest.Nested(v, "resources").([]any)[0]
		assert.Equal(t, map[string]any{"group": "harbor.example.com", "version": "v1", "kind": "Berth"}, apitest.Nested(resource, "responseKind"))
		assert.Equal(t, []any{"bt"}, apitest.Nested(resource, "shortNames"))
		tag := doc.Header.Get("ETag")
		assert.Equal(t, 304, h.Do("GET", "/apis", nil, "Accept", "application/json;g=apidiscovery.k8s.io;v="+version+";as=APIGroupDiscoveryList", "If-None-Match", tag).Code)
	}
	assert.Equal(t, "v1", apitest.NestedString(h.Must(200, "GET", "/apis/harbor.example.com", nil).Body, "preferredVersion", "version"))
	assert.Equal(t, "APIResourceList", h.Must(200, "GET", berthAPI, nil).Body["kind"])
	assert.Contains(t, string(h.Must(200, "GET", "/", nil).Raw), berthAPI)
	index := h.Must(200, "GET", "/openapi/v3", nil)
	where := apitest.NestedString(index.Body, "paths", "apis/harbor.example.com/v1", "serverRelativeURL")
	require.NotEmpty(t, where)
	schemas, _ := apitest.Nested(h.Must(200, "GET", where, nil).Body, "components", "schemas").(map[string]any)
	assert.NotNil(t, schemas[berthDefinition])
	var swagger apitest.Response
	require.Eventually(t, func() bool { // a document that took too long is read again
		swagger = h.Do("GET", "/openapi/v2", nil)
		return apitest.Nested(swagger.Body, "paths", berthAPI+"/berths") != nil
	}, apitest.Timeout, 10*time.Millisecond)
	assert.NotNil(t, apitest.Nested(swagger.Body, "paths", "/apis/apps/v1/deployments"))
	definitions, _ := apitest.Nested(swagger.Body, "definitions").(map[string]any)
	for _, name := range []string{berthDefinition, "io.k8s.api.apps.v1.Deployment"} {
		assert.NotNil(t, definitions[name], name)
	}
	for name := range definitions {
		assert.False(t, strings.HasSuffix(name, "_v2"), "both servers say the same of %s", name)
	}
	h.Must(200, "DELETE", apiService+"/"+harborName, nil)
	h.settle()
	assert.Equal(t, 404, h.Do("GET", berths, nil).Code)
	assert.NotContains(t, string(h.Must(200, "GET", "/apis", nil).Raw), "harbor")
	assert.NotContains(t, string(h.Must(200, "GET", "/openapi/v3", nil).Raw), "harbor")
	assert.NotContains(t, string(h.Must(200, "GET", "/openapi/v2", nil).Raw), "harbor")
}

// TestExtensionServerRecovers: if an extension server fails, only its own versions are unavailable, and they are
// available again when it returns.
func TestExtensionServerRecovers(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	back := h.back()
	web := h.listen(back)
	h.register()
	h.Must(201, "POST", berths, newBerthBody("east", 100))
	web.CloseClientConnections()
	web.Close()
	assert.Equal(t, "ServiceUnavailable", h.Must(503, "GET", berths, nil).Body["reason"])
	h.settle()
	condition := h.condition(harborName)
	assert.Equal(t, []string{"False", "FailedDiscoveryCheck"}, condition[:2])
	assert.Contains(t, condition[2], "https://berths.harbor.svc:443/apis/harbor.example.com/v1: dial tcp")
	h.Must(503, "GET", berths, nil)
	h.Must(503, "GET", berthAPI, nil)
	h.Must(200, "GET", "/api/v1/namespaces", nil)
	h.Must(200, "GET", "/openapi/v2", nil)
	doc := h.Must(200, "GET", "/apis", nil, "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	assert.Contains(t, string(doc.Raw), `"Stale"`)
	assert.Contains(t, string(h.Must(200, "GET", "/metrics", nil).Raw), `aggregator_unavailable_apiservice{name="v1.harbor.example.com"} 1`)
	assert.Contains(t, string(h.Must(200, "GET", "/metrics", nil).Raw), `aggregator_unavailable_apiservice_total{name="v1.harbor.example.com",reason="FailedDiscoveryCheck"} 1`)
	h.listen(back)
	h.Do("GET", berths, nil) // triggers a probe
	h.settle()
	assert.Equal(t, []string{"True", "Passed"}, h.condition(harborName)[:2])
	assert.Equal(t, []string{"east"}, h.Must(200, "GET", berths, nil).Names())
}

// TestAggregatedUpgrade: a WebSocket passes through both servers.
func TestAggregatedUpgrade(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	h.listen(h.back())
	h.register()
	h.Must(201, "POST", berths, newBerthBody("east", 100))
	url := strings.Replace(h.front.URL(), "http://", "ws://", 1)
	ws, _, err := websocket.Dial(t.Context(), url+berths+"?watch=1", nil)
	require.NoError(t, err)
	defer func() { _ = ws.CloseNow() }()
	_, message, err := ws.Read(t.Context())
	require.NoError(t, err)
	var e apitest.Event
	require.NoError(t, json.Unmarshal(message, &e))
	assert.Equal(t, "ADDED east", e.String())
	h.echoes()
	socket := apitest.NewClient(t, h.front.URL(), http.DefaultClient)
	for _, to := range []string{"h2c", "HTTP/2.0", "x"} {
		socket.Must(400, "GET", berths, nil, "Connection", "Upgrade", "Upgrade", to)
	}
}

// echoes sends data through an upgraded connection with a protocol other than WebSocket, such as that of exec, and
// expects it back.
func (h *harbor) echoes() {
	h.T.Helper()
	h.listen(serveDiscoveryAnd(func(w http.ResponseWriter, r *http.Request) {
		conn, rest, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_, _ = io.Copy(conn, rest)
	}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.front.URL(), "http://"))
	require.NoError(h.T, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s/east/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", berths)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	require.NoError(h.T, err)
	require.Equal(h.T, http.StatusSwitchingProtocols, res.StatusCode)
	fmt.Fprintln(conn, "ahoy")
	line, err := in.ReadString('\n')
	require.NoError(h.T, err)
	assert.Equal(h.T, "ahoy\n", line)
}

// TestConditionOfUnresolvableService: the condition shows why a service cannot be resolved.
func TestConditionOfUnresolvableService(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	h.register()
	step := func(reason, message string) {
		t.Helper()
		h.settle()
		assert.Equal(t, []string{"False", reason, message}, h.condition(harborName))
	}
	step("ServiceNotFound", `service/berths in "harbor" is not present`)
	h.Must(201, "POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"harbor"}}`)
	const services = "/api/v1/namespaces/harbor/services"
	h.Must(201, "POST", services, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"berths"},"spec":{"ports":[{"name":"a","port":444}]}}`)
	step("ServicePortError", `service/berths in "harbor" is not listening on port 443`)
	h.Must(200, "PATCH", services+"/berths", `{"spec":{"ports":[{"name":"a","port":443}]}}`)
	step("EndpointsNotFound", `cannot find endpoints for service/berths in "harbor"`)
	const slices = "/apis/discovery.k8s.io/v1/namespaces/harbor/endpointslices"
	h.Must(201, "POST", slices, `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"berths-1","labels":{"kubernetes.io/service-name":"berths"}},
		"addressType":"IPv4","endpoints":[],"ports":[{"name":"a","port":443}]}`)
	step("MissingEndpoints", `endpoints for service/berths in "harbor" have no addresses with port name "a"`)
}

// TestLocalAPIServices: there is an APIService for each version that the server serves itself.
func TestLocalAPIServices(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	assert.Contains(t, string(h.Must(200, "GET", "/readyz?verbose", nil).Raw), "[+]autoregister-completion ok")
	label := func(name string) string {
		labels, _ := apitest.Nested(h.Must(200, "GET", apiService+"/"+name, nil).Body, "metadata", "labels").(map[string]any)
		s, _ := labels["kube-aggregator.kubernetes.io/automanaged"].(string)
		return s
	}
	assert.Equal(t, "onstart", label("v1."))
	assert.Equal(t, "onstart", label("v2.autoscaling"))
	assert.Equal(t, "Local", h.condition("v1.apps")[1])
	h.Must(404, "GET", apiService+"/v1.apiregistration.k8s.io", nil)
	h.front.InstallCRDs(widgetFiles())
	h.settle()
	assert.Equal(t, "true", label("v1.example.com"))
	h.Must(200, "DELETE", apiService+"/v1.example.com", nil)
	h.Must(200, "DELETE", apiService+"/v1.apps", nil)
	h.settle()
	assert.Equal(t, "true", label("v1.example.com"))
	h.Must(404, "GET", apiService+"/v1.apps", nil)
	h.Must(200, "GET", "/apis/apps/v1/deployments", nil)
	h.Must(200, "PATCH", apiService+"/v1.batch", `{"spec":{"versionPriority":1}}`)
	h.Must(200, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com", nil)
	h.settle()
	h.Must(404, "GET", apiService+"/v1.example.com", nil)
	h.front.Restart()
	h.Must(200, "GET", apiService+"/v1.apps", nil)
	assert.EqualValues(t, 15, apitest.Nested(h.Must(200, "GET", apiService+"/v1.batch", nil).Body, "spec", "versionPriority"))
}

// widgetFiles has a file with a definition.
func widgetFiles() fstest.MapFS {
	return fstest.MapFS{"widgets.yaml": {Data: []byte(apitest.WidgetManifest)}}
}

// TestAggregatedKubectl: kubectl works with a kind of an extension server.
func TestAggregatedKubectl(t *testing.T) {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	t.Parallel()
	h := newHarbor(t)
	web := h.listen(h.back())
	h.register()
	k := &apitest.Kubectl{T: t, Path: path, Dir: t.TempDir(), URL: h.front.URL()}
	k.OK("", "api-resources --api-group=harbor.example.com", "berths", "bt", "harbor.example.com/v1", "Berth")
	k.OK("", "explain berths.spec", "Length of the longest ship, in metres", "<integer>")
	east := `{"apiVersion":"harbor.example.com/v1","kind":"Berth","metadata":{"name":"east"},"spec":{"length":120}}`
	k.OK(east, "apply -f -", "berth.harbor.example.com/east created")
	k.OK(strings.Replace(east, "120", "130", 1), "apply --server-side --force-conflicts -f -", "east serverside-applied")
	k.OK("", "get bt", "NAME", "east")
	k.OK("", "get berth east -o jsonpath={.spec.length}", "130")
	k.Fails(strings.Replace(east, "length", "width", 1), "create --validate=strict -f -", `unknown field "spec.width"`)
	k.OK("", "get apiservice "+harborName, "harbor/berths", "True")
	k.OK("", "wait --for=condition=Available apiservice/"+harborName, "condition met")
	k.OK("", "wait --for=jsonpath={.spec.length}=130 berth/east --timeout=30s", "condition met")
	web.CloseClientConnections()
	web.Close()
	k.Fails("", "get bt --cache-dir="+k.Dir+"/other", "ServiceUnavailable")
	k.OK("", "get namespaces", "default")
	k.OK("", "explain deployments.spec", "replicas")
	k.OK("", "get apiservice "+harborName, "False (FailedDiscoveryCheck)")
}

// TestForwardedRequestReadsRevisionOnce: a forwarded request reads the newest revision from the store only once.
func TestForwardedRequestReadsRevisionOnce(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHarbor(t, apitest.WithStorage(apitest.CountingStore{SharedStore: apitest.SharedStore{Backend: store}}))
	h.leads(server.Endpoint{Handler: h.back()})
	h.register()
	for _, path := range []string{berths, berths + "?resourceVersion=0", berths + "?watch=1"} {
		code, asked := apitest.CountRevisions(t, h.Client, "GET", path, "")
		assert.Equal(t, 200, code, path)
		assert.Len(t, asked, 1, path)
	}
}
