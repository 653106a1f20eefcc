package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// frames returns the functions of this module on the stack of the calling goroutine, innermost
// first, without those of tests.
func frames() (list []string) {
	callers := make([]uintptr, 100)
	more := true
	for at := runtime.CallersFrames(callers[:runtime.Callers(2, callers)]); more; {
		var f runtime.Frame
		f, more = at.Next()
		if strings.HasPrefix(f.Function, "orch.io/controlplane/") && !strings.HasSuffix(f.File, "_test.go") && !strings.Contains(f.Function, "/servertest.") {
			list = append(list, f.Function)
		}
	}
	return list
}

// probedStore passes the stack of each Commit to a function.
type probedStore struct {
	storage.Backend
	commit func([]string)
}

func (p *probedStore) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	p.commit(frames())
	return p.Backend.Commit(ctx, ws...)
}

// probedWriter passes the stack of each Write of a response body to a function.
type probedWriter struct {
	http.ResponseWriter
	write func([]string)
}

func (p *probedWriter) Write(b []byte) (int, error) {
	p.write(frames())
	return p.ResponseWriter.Write(b)
}

// TestCallStacksAreShort bounds the number of functions between ServeHTTP and the commit in the
// store, and between ServeHTTP and the first byte of a response. A developer who debugs the server
// reads all of them.
func TestCallStacksAreShort(t *testing.T) {
	var stack []string
	store := &probedStore{memstore.New(memstore.Options{}), func(s []string) { stack = s }}
	s := servertest.New(t, apitest.WithStorage(store))
	var written []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(&probedWriter{w, func(s []string) { written = s }}, r)
	}))
	defer web.Close()
	a := apitest.NewClient(t, web.URL, web.Client())
	for _, c := range []struct {
		method, path string
		body         any
		code, most   int
	}{
		{"POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"), 201, 12},
		{"PUT", apitest.ConfigMapsPath + "/x", apitest.NewConfigMap("x", "a", "b"), 200, 12},
		{"PATCH", apitest.ConfigMapsPath + "/x", `{"data":{"a":"c"}}`, 200, 12},
		{"DELETE", apitest.ConfigMapsPath + "/x", nil, 200, 12},
	} {
		a.Must(c.code, c.method, c.path, c.body)
		assert.NotEmpty(t, stack)
		assert.LessOrEqual(t, len(stack), c.most, "%s: %s", c.method, strings.Join(stack, "\n"))
		t.Log(c.method, len(stack))
	}
	for _, path := range []string{"/api/v1/namespaces/default", "/api/v1/namespaces"} {
		a.Must(200, "GET", path, nil)
		assert.NotEmpty(t, written)
		assert.LessOrEqual(t, len(written), 9, "GET %s: %s", path, strings.Join(written, "\n"))
		t.Log(path, len(written))
	}
}
