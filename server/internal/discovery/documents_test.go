package discovery_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
)

const (
	v2Old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	v2New = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	v3Old = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
	v3New = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

func TestOpenAPIOverHTTP(t *testing.T) {
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	b.Register(core.Kinds()...)
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Shutdown(t.Context())) }()
	ask := func(method, url string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, url, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	index := ask("GET", "/openapi/v3")
	require.Equal(t, http.StatusOK, index.Code)
	_, url, ok := strings.Cut(index.Body.String(), `{"serverRelativeURL":"`)
	require.True(t, ok)
	url, _, _ = strings.Cut(url, `"`)
	require.True(t, strings.HasPrefix(url, "/openapi/v3/api/v1?hash="), url)

	tests := []struct {
		method, url, accept string
		code                int
		kind                string
	}{
		{"GET", "/openapi/v2", "", 200, "application/json"},
		{"GET", "/openapi/v2", v2Old, 200, v2New},
		{"GET", "/openapi/v2", "text/plain, " + v2New + ", application/json", 200, v2New},
		{"GET", "/openapi/v2", "application/json;q=0.5, " + v2Old + ";q=0.9", 200, v2New},
		{"GET", "/openapi/v2", v3Old, 406, "application/json"},
		{"GET", "/openapi/v2/", "*/*", 200, "application/json"},
		{"HEAD", "/openapi/v2", "", 200, "application/json"},
		{"POST", "/openapi/v2", "", 405, "application/json"},
		{"GET", "/openapi/v3", "text/html", 406, "application/json"},
		{"GET", "/openapi/v3/api/v1", "", 200, "application/json"},
		{"GET", "/openapi/v3/api/v1", v3Old, 200, v3New},
		{"GET", "/openapi/v3/api/v1", v3New + ";q=0, */*", 200, "application/json"},
		{"GET", url, "", 200, "application/json"},
		{"GET", url, v3Old, 200, v3New},
		{"GET", "/openapi/v3/api/v1?hash=old", "", 301, ""},
		{"GET", "/openapi/v3/api/v2", "", 404, ""},
		{"GET", "/openapi/v3/apis/none/v1", "", 404, ""},
		{"GET", "/openapi/v3/apis//v1", "", 404, ""},
		{"GET", "/openapi/v4", "", 404, ""},
		{"GET", "/openapi", "", 404, ""},
	}
	for _, test := range tests {
		w := ask(test.method, test.url, "Accept", test.accept)
		assert.Equal(t, test.code, w.Code, "%s %s %s", test.method, test.url, test.accept)
		if test.kind != "" {
			assert.Equal(t, test.kind, w.Header().Get("Content-Type"), "%s %s", test.url, test.accept)
		}
		if test.code != http.StatusOK {
			continue
		}
		assert.Equal(t, test.method == "HEAD", w.Body.Len() == 0)
		hashed := strings.Contains(test.url, "?hash=")
		assert.Equal(t, hashed, w.Header().Get("Cache-Control") == "public, immutable", test.url)
		assert.Equal(t, hashed, w.Header().Get("Expires") != "", test.url)
		assert.Equal(t, "Accept", w.Header().Get("Vary"))
		again := ask(test.method, test.url, "Accept", test.accept, "If-None-Match", `"other", W/`+w.Header().Get("ETag"))
		assert.Equal(t, http.StatusNotModified, again.Code)
		assert.Equal(t, w.Header().Values("Vary"), again.Header().Values("Vary"), "a cache updates its stored response with these headers")
		assert.Zero(t, again.Body.Len())
	}
	moved := ask("GET", "/openapi/v3/api/v1?hash=old")
	assert.Equal(t, strings.TrimPrefix(url, "/openapi/v3/api/v1"), moved.Header().Get("Location"))
	assert.NotEqual(t, ask("GET", url).Header().Get("ETag"), ask("GET", url, "Accept", v3Old).Header().Get("ETag"))
}
