package views_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestAuthorizersSeeSelectors checks that authorizers get the selectors of requests for
// collections, and of no other requests.
func TestAuthorizersSeeSelectors(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]auth.Attributes{}
	s := servertest.New(t, func(b *server.Builder) {
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[a.Verb] = a
			return auth.Allow, "", nil
		})
	})
	for verb, q := range map[string]struct{ method, path string }{
		"list": {http.MethodGet, "configmaps"}, "deletecollection": {http.MethodDelete, "configmaps"}, "get": {http.MethodGet, "configmaps/a"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), q.method, s.Host()+"/api/v1/namespaces/default/"+q.path+"?fieldSelector=metadata.name!%3Dx&labelSelector=a+in+(b)", nil)
		require.NoError(t, err)
		answer, err := s.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		mu.Lock()
		a, ok := asked[verb]
		mu.Unlock()
		assert.True(t, ok, verb)
		if verb == "get" {
			assert.Empty(t, a.Fields+a.Labels)
			continue
		}
		assert.Equal(t, "metadata.name!=x", a.Fields, verb)
		assert.Equal(t, "a in (b)", a.Labels, verb)
	}
}
