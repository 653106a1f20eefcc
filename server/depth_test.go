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

// frames returns the functions of this project that a goroutine is in, those of
// tests left out, the innermost first.
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

// probed tells what is on the stack when it is asked to commit.
type probed struct {
	storage.Backend
	commit func([]string)
}

func (p *probed) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	p.commit(frames())
	return p.Backend.Commit(ctx, ws...)
}

// probedWriter tells what is on the stack when the body of an answer is written.
type probedWriter struct {
	http.ResponseWriter
	write func([]string)
}

func (p *probedWriter) Write(b []byte) (int, error) {
	p.write(frames())
	return p.ResponseWriter.Write(b)
}

// TestWaysAreShort holds how many functions stand between the door and the store,
// and between the door and the first byte of an answer: whoever debugs the server
// reads them all.
func TestWaysAreShort(t *testing.T) {
	var stack []string
	store := &probed{memstore.New(memstore.Options{}), func(s []string) { stack = s }}
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
