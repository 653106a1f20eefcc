package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

const berthList = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"harbor.example.com/v1","resources":[
	{"name":"berths","singularName":"berth","namespaced":true,"kind":"Berth","verbs":["get","list"]}]}`

// serveDiscoveryAnd serves a valid discovery document, and all other paths with a handler.
func serveDiscoveryAnd(rest http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == berthAPI {
			fmt.Fprint(w, berthList)
			return
		}
		rest(w, r)
	}
}

// flood writes until the client disconnects.
func flood(w http.ResponseWriter, r *http.Request) {
	text := []byte(strings.Repeat(" ", 64<<10))
	for r.Context().Err() == nil {
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

// TestHostileDiscovery: an extension server with an invalid discovery document is unavailable, and does not affect
// other versions.
func TestHostileDiscovery(t *testing.T) {
	t.Parallel()
	discovery := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == berthAPI {
				answer(w, r)
				return
			}
			http.NotFound(w, r)
		}
	}
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) }
	}
	for name, c := range map[string]struct {
		back http.HandlerFunc
		want string
	}{
		"endless":     {flood, "document of more than 2097152 bytes"},
		"other group": {text(strings.Replace(berthList, "harbor.example.com/v1", "apps/v1", 1)), "not a discovery document of harbor.example.com/v1"},
		"other kind":  {text(`{"kind":"APIGroupList"}`), "not a discovery document of"},
		"no JSON":     {text(`<html>`), "not a discovery document"},
		"deep":        {text(strings.Repeat(`{"a":`, 5000)), "not a discovery document"},
		"long word":   {text(strings.Replace(berthList, "Berth", strings.Repeat("B", 300), 1)), "too long"},
		"control":     {text(strings.Replace(berthList, `"berths"`, `"ber\u0000ths"`, 1)), "control character"},
		"no name":     {text(strings.Replace(berthList, `"berths"`, `""`, 1)), "has no name"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://localhost:1/", http.StatusFound)
		}, "bad status: 302"},
		"refuses":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, "bad status: 403"},
		"other switch": {func(w http.ResponseWriter, _ *http.Request) { switchProtocol(w) }, "bad status: 101"},
		"panics":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ""},
		"long head":    {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 2<<20)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbor(t)
			h.listenBy(discovery(c.back), name != "other switch")
			h.register()
			condition := h.condition(harborName)
			assert.Equal(t, []string{"False", "FailedDiscoveryCheck"}, condition[:2])
			assert.Contains(t, condition[2], c.want)
			h.Must(503, "GET", berths, nil)
			doc := h.Must(200, "GET", "/apis", nil, "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			assert.Contains(t, string(doc.Raw), `"Stale"`)
			assert.NotContains(t, string(doc.Raw), `"berth"`)
			h.Must(200, "GET", "/openapi/v2", nil)
			h.Must(200, "GET", "/apis/apps/v1/namespaces/default/deployments", nil)
		})
	}
}

// TestHostileResponses: invalid responses of an extension server to a forwarded request become errors.
func TestHostileResponses(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, c := range map[string]struct {
		back http.HandlerFunc
		code int
		want string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://localhost:1/", http.StatusTemporaryRedirect)
		}, 502, "redirect"},
		"switch": {func(w http.ResponseWriter, _ *http.Request) { switchProtocol(w) }, 502, "invalid upgrade response"},
		"hangs": {func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/openapi/") { // read before the server is available
				http.NotFound(w, r)
				return
			}
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, 504, "did not answer in time"},
		"cuts":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 503, "error trying to reach service"},
		"long head": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 2<<20)) }, 503, "error trying"},
		"no code": {func(w http.ResponseWriter, _ *http.Request) {
			writeRaw(w, "HTTP/1.1 000 Nothing\r\nContent-Length: 2\r\n\r\n{}")
		}, 502, "status code 0"},
		"origin": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "theirs")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			for _, name := range []string{"Set-Cookie", "Alt-Svc", "Clear-Site-Data", "Refresh", "Strict-Transport-Security"} {
				w.Header().Set(name, "theirs")
			}
			fmt.Fprint(w, `{}`)
		}, 200, "{}"},
		"own flows": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Kubernetes-PF-FlowSchema-UID", "theirs")
			w.Header().Set("Audit-Id", "theirs")
			w.Header().Set("Access-Control-Allow-Origin", "theirs")
			fmt.Fprint(w, `{}`)
		}, 200, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbor(t, func(b *server.Builder) {
				if name == "hangs" {
					b.Limits.RequestTime = 10 * time.Second
				}
			})
			h.listenBy(serveDiscoveryAnd(c.back), name != "switch" && name != "no code")
			h.register()
			require.Equal(t, "Passed", h.condition(harborName)[1])
			got := h.Do("GET", berths, nil)
			assert.Equal(t, c.code, got.Code)
			assert.Contains(t, string(got.Raw), c.want)
			for name := range got.Header {
				assert.NotEqual(t, "theirs", got.Header.Get(name))
			}
			h.Must(200, "GET", "/api/v1/namespaces", nil)
		})
	}
}

// switchProtocol switches to a protocol that the client did not request.
func switchProtocol(w http.ResponseWriter) {
	writeRaw(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
}

// writeRaw writes a text to the connection.
func writeRaw(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // an HTTP/2 connection
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(text))
}

// TestHostileOpenAPIDocuments: invalid OpenAPI documents, and definitions for kinds of other servers, are not merged
// into the documents of this server.
func TestHostileOpenAPIDocuments(t *testing.T) {
	t.Parallel()
	paths := func(ref string) string {
		return `"paths":{"` + berths + `":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"` + ref + `"}}}}},
			"/apis/apps/v1/deployments":{"get":{"description":"stolen","responses":{}}}}`
	}
	swagger := func(definition string) string {
		return `{"swagger":"2.0",` + paths("#/definitions/B") + `,"definitions":{"B":` + definition + `}}`
	}
	for name, c := range map[string]struct {
		v2, v3 string
		merged bool
	}{
		"good":           {swagger(`{"type":"object","more":1,"properties":{"a":{"$ref":"#/definitions/B"}}}`), `{"paths":{"apis/harbor.example.com/v1":{"serverRelativeURL":"/x?hash=ABC"}}}`, true},
		"stolen kind":    {swagger(`{"type":"object","x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"Deployment"}]}`), `{"paths":{"apis/apps/v1":{"serverRelativeURL":"/x?hash=stolen"}}}`, true},
		"other type":     {swagger(`{"type":7}`), `{}`, false},
		"other shape":    {swagger(`[]`), `[]`, false},
		"no definition":  {`{"swagger":"2.0",` + paths("#/definitions/C") + `}`, `{"paths":7}`, false},
		"other version":  {`{"swagger":"3.0"}`, `{"paths":{"apis/harbor.example.com/v1":{"serverRelativeURL":"` + `\u0000` + `"}}}`, false},
		"laughing":       {`{"swagger":"2.0","paths":{"` + berths + `":{"parameters":[{"$ref":"#/parameters/a"}]}},"parameters":{"a":{"x-a":[{"$ref":"#/parameters/a"}]}}}`, ``, false},
		"long parameter": {longParameters(), ``, false},
		"elsewhere":      {swagger(`{"type":"object","properties":{"a":{"$ref":"#/parameters/B"}}}`), ``, false},
		"dangling":       {swagger(`{"type":"object","properties":{"a":{"$ref":"#/definitions/C"}}}`), ``, false},
		"unknown type":   {swagger(`{"type":"thing"}`), ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbor(t)
			h.listen(serveDiscoveryAnd(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/openapi/v2":
					fmt.Fprint(w, c.v2)
				case "/openapi/v3":
					fmt.Fprint(w, c.v3)
				default:
					http.NotFound(w, r)
				}
			}))
			h.register()
			require.Equal(t, "Passed", h.condition(harborName)[1])
			doc := h.Must(200, "GET", "/openapi/v2", nil)
			assert.Equal(t, c.merged, apitest.Nested(doc.Body, "paths", berths) != nil)
			assert.NotEqual(t, "stolen", apitest.NestedString(doc.Body, "paths", "/apis/apps/v1/deployments", "get", "description"))
			assert.Nil(t, apitest.Nested(doc.Body, "definitions", "B", "more"))
			assert.Nil(t, apitest.Nested(doc.Body, "definitions", "B", "x-kubernetes-group-version-kind"))
			index := h.Must(200, "GET", "/openapi/v3", nil)
			where := apitest.NestedString(index.Body, "paths", "apis/harbor.example.com/v1", "serverRelativeURL")
			require.Equal(t, c.merged, where != "", "a document of version 3 must be made from the document of version 2")
			if name == "good" {
				assert.Equal(t, "/openapi/v3/apis/harbor.example.com/v1?hash=ABC", where)
			} else if c.merged {
				assert.NotNil(t, apitest.Nested(h.Must(200, "GET", where, nil).Body, "components", "schemas", "B"))
			}
			assertReadable(t, doc.Body)
			assert.NotContains(t, string(index.Raw), "stolen")
			h.Must(200, "GET", "/openapi/v2", nil, "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
		})
	}
}

// assertReadable checks the definitions of a document like a client.
func assertReadable(t *testing.T, swagger map[string]any) {
	t.Helper()
	definitions, _ := swagger["definitions"].(map[string]any)
	require.NotEmpty(t, definitions)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if ref, is := v["$ref"].(string); is {
				assert.NotNil(t, definitions[strings.TrimPrefix(ref, "#/definitions/")], ref)
			}
			if kind, is := v["type"].(string); is {
				assert.Contains(t, []string{"object", "array", "string", "number", "integer", "boolean", "apiKey"}, kind)
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(definitions)
}

// longParameters returns a document that is short only because it refers to the same parameter many times.
func longParameters() string {
	refs := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/parameters/a"},`, 1000), ",")
	return `{"swagger":"2.0","paths":{"` + berths + `":{"parameters":[` + refs + `]}},
		"parameters":{"a":{"name":"a","in":"query","type":"string","description":"` + strings.Repeat("x", 20<<10) + `"}}}`
}

// TestAggregatedLoopIsDetected: a request that returns to this server is not forwarded again.
func TestAggregatedLoopIsDetected(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	behind := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serveDiscoveryAnd(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+h.front.As("admin", auth.Masters).Token())
			h.front.ServeHTTP(w, r)
		})(w, r)
	})
	h.leads(server.Endpoint{Handler: behind})
	h.register()
	assert.Equal(t, http.StatusLoopDetected, h.Do("GET", berths, nil).Code)
}

// TestReservedGroupsAreServedLocally: this server always serves the groups that every client needs, whatever
// APIServices exist.
func TestReservedGroupsAreServedLocally(t *testing.T) {
	t.Parallel()
	h := newHarbor(t)
	h.leads(server.Endpoint{Handler: http.NotFoundHandler()})
	for _, name := range []string{"v1.", "v1.apiregistration.k8s.io"} {
		version, group, _ := strings.Cut(name, ".")
		body := map[string]any{"spec": map[string]any{"service": map[string]any{"namespace": "harbor", "name": "berths"}, "insecureSkipTLSVerify": true,
			"version": version, "group": group, "groupPriorityMinimum": 1, "versionPriority": 1}}
		if h.Do("GET", apiService+"/"+name, nil).Code == 200 {
			h.Must(200, "PATCH", apiService+"/"+name, body)
		} else {
			body["metadata"] = map[string]any{"name": name}
			h.Must(201, "POST", apiService, body)
		}
	}
	h.settle()
	h.Must(200, "GET", "/api/v1/namespaces", nil)
	h.Must(200, "GET", apiService, nil)
	assert.Equal(t, "Local", h.condition("v1.")[1])
}
