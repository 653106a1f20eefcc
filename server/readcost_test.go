package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

// newRead builds a server and returns a function that makes a GET request without a connection, so
// that only the work of the server is measured.
func newRead(t testing.TB) func() {
	sb := &server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes}
	sb.Register(builtin.Kinds()...)
	s, err := sb.Build(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	return func() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default", nil))
		if w.Code != http.StatusOK {
			t.Fatal(w.Body.String())
		}
	}
}

func BenchmarkGetHandler(b *testing.B) {
	read := newRead(b)
	b.ReportAllocs()
	for b.Loop() {
		read()
	}
}

// TestReadAllocations bounds the allocations of a read, including those of its recorder. If it
// fails, a change has added work to every request; BenchmarkGetHandler with -memprofile shows
// where.
func TestReadAllocations(t *testing.T) {
	if raced() {
		t.Skip("the race detector allocates, too")
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(500, newRead(t)), 39.0)
}
