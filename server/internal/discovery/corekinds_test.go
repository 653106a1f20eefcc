package discovery_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

// Pod is a program's own kind with the name of a built-in kind.
type Pod struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Orbit string `json:"orbit" schema:"required"`
	} `json:"spec"`
}

// TestProgramReplacesCoreKind serves a program's own struct as a kind of the core group, without
// some built-in kinds.
func TestProgramReplacesCoreKind(t *testing.T) {
	t.Parallel()
	own := registry.Of(registry.Definition[Pod]{Version: "v1"})
	few := slices.DeleteFunc(builtin.Kinds(), func(k *registry.Kind) bool {
		return k.Group != "" || k.Kind == "Pod" || k.Kind == "Event" // Event is also in another group
	})
	both := &server.Builder{Authorizer: auth.AllowAll}
	both.Register(builtin.Kinds()...)
	both.Register(own)
	_, err := both.Build(t.Context())
	require.ErrorContains(t, err, "Pod")

	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	b.Register(few...)
	b.Register(own)
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"a"},"spec":{}}`, 422, "spec.orbit: Required value"},
		{"POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"a"},"spec":{"orbit":"low"}}`, 201, `"orbit":"low"`},
		{"GET", "/api/v1/pods", "", 200, `"orbit":"low"`},
		{"GET", "/api/v1", "", 200, `"configmaps"`},
		{"GET", "/apis/apps/v1/deployments", "", 404, "404 page not found"},
		{"GET", "/apis", "", 200, `"groups":[]`},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		assert.Equal(t, c.code, w.Code, "%s %s: %s", c.method, c.path, w.Body)
		assert.Contains(t, w.Body.String(), c.says, "%s %s", c.method, c.path)
	}
}
