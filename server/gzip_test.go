package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin/core"
)

// TestCompressedResponseHasSameContent checks which responses are compressed, and that a compressed response
// has the same content.
func TestCompressedResponseHasSameContent(t *testing.T) {
	build := func(from int) func(method, url, peer, accept string) *httptest.ResponseRecorder {
		b := &Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, Serving: Serving{GzipFrom: from}}
		b.Register(core.Kinds()...)
		s, err := b.Build(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Shutdown(context.Background())) })
		for i := range 40 {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/namespaces/default/configmaps",
				strings.NewReader(fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"v":%q}}`, i, strings.Repeat("x", 8<<10)))))
			require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
		}
		return func(method, url, peer, accept string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, url, nil)
			r.RemoteAddr = peer
			if accept != "" {
				r.Header.Set("Accept-Encoding", accept)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
	}
	const (
		list   = "/api/v1/namespaces/default/configmaps"
		item   = list + "/c1"
		table  = list + "?pretty=1"
		doc    = "/openapi/v2"
		remote = "192.0.2.1:1234"
		local  = "127.0.0.1:1234"
	)
	usual, early, never := build(0), build(1), build(-1)
	tests := []struct {
		name                string
		ask                 func(method, url, peer, accept string) *httptest.ResponseRecorder
		method, url         string
		peer, accept        string
		zipped, vary, empty bool
	}{
		{"a long list", usual, "GET", list, remote, "gzip", true, true, false},
		{"a pretty-printed list", usual, "GET", table, remote, "gzip", true, true, false},
		{"not accepted", usual, "GET", list, remote, "", false, true, false},
		{"refused", usual, "GET", list, remote, "gzip;q=0", false, true, false},
		{"loopback", usual, "GET", list, local, "gzip", false, false, false},
		{"in process", usual, "GET", list, "in-process", "gzip", false, false, false},
		{"short", usual, "GET", item, remote, "gzip", false, false, false},
		{"short, from 1 byte on", early, "GET", item, remote, "gzip", true, true, false},
		{"an error", early, "GET", item + "-not", remote, "gzip", true, true, false},
		{"a document", early, "GET", doc, remote, "gzip", true, true, false},
		{"the head of a document", early, "HEAD", doc, remote, "gzip", true, true, true},
		{"the plain head of a document", usual, "HEAD", doc, local, "gzip", false, false, true},
		{"loopback, from 1 byte on", early, "GET", item, local, "gzip", true, true, false},
		{"in process, from 1 byte on", early, "GET", list, "in-process", "gzip", true, true, false},
		{"disabled", never, "GET", list, remote, "gzip", false, false, false},
		{"a watch", early, "GET", list + "?watch=1&timeoutSeconds=1", remote, "gzip", false, false, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.ask(tc.method, tc.url, tc.peer, tc.accept)
			h := got.Result().Header
			assert.Equal(t, tc.vary, strings.Contains(strings.Join(h.Values("Vary"), ","), "Accept-Encoding"))
			body := got.Body.Bytes()
			if tc.empty {
				assert.Empty(t, body)
			}
			if n := h.Get("Content-Length"); n != "" && !tc.empty {
				assert.Equal(t, strconv.Itoa(len(body)), n)
			}
			if !tc.zipped {
				assert.Empty(t, h.Get("Content-Encoding"))
				return
			}
			assert.Equal(t, "gzip", h.Get("Content-Encoding"))
			if tc.empty {
				return
			}
			z, err := gzip.NewReader(bytes.NewReader(body))
			require.NoError(t, err)
			text, err := io.ReadAll(z)
			require.NoError(t, err)
			assert.Equal(t, tc.ask(tc.method, tc.url, remote, "").Body.String(), string(text))
		})
	}
}
