package server_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestComponentStatuses: the server tells of its store and of what the program checks, to
// those who read, in every form, and takes no writes.
func TestComponentStatuses(t *testing.T) {
	s := servertest.New(t, func(b *server.Builder) {
		b.Checks = map[string]func(context.Context) error{"disk": func(context.Context) error { return errors.New("nearly full") }}
	})
	a := inProcess(t, s)
	const path = "/api/v1/componentstatuses"
	got := a.must(200, "GET", path, nil)
	assert.Equal(t, []string{`299 - "v1 ComponentStatus is deprecated in v1.19+"`}, got.header["Warning"])
	list := meta.NewObject(got.body)
	assert.Equal(t, "ComponentStatusList", list.Kind())
	assert.Equal(t, map[string]any{}, list.Map("metadata"))
	state := func(name, status, message string) any {
		return map[string]any{
			"metadata": map[string]any{"name": name}, "conditions": []any{map[string]any{"type": "Healthy", "status": status, "message": message}},
		}
	}
	assert.Contains(t, list.List("items"), state("storage", "True", "ok"))
	assert.Contains(t, list.List("items"), state("disk", "False", "nearly full"))

	one := meta.NewObject(a.must(200, "GET", path+"/disk", nil).body)
	assert.Equal(t, "ComponentStatus disk", one.Kind()+" "+one.Name())
	a.must(404, "GET", path+"/none", nil)
	assert.Len(t, meta.NewObject(a.must(200, "GET", path+"?fieldSelector=metadata.name%3Ddisk", nil).body).List("items"), 1)
	assert.Empty(t, meta.NewObject(a.must(200, "GET", path+"?labelSelector=a%3Db", nil).body).List("items"))
	a.must(400, "GET", path+"?fieldSelector=conditions%3Db", nil)
	for _, at := range []string{path, path + "/disk"} {
		rows := meta.NewObject(a.do("GET", at, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body).Objects("rows")
		require.NotEmpty(t, rows, at)
		assert.Contains(t, [][]any{{"disk", "Unhealthy", "nearly full", ""}, {"storage", "Healthy", "ok", ""}}, rows[0].List("cells"))
		assert.Equal(t, 200, a.do("GET", at, nil, "Accept", "application/vnd.kubernetes.protobuf").code)
	}
	for _, write := range [][2]string{{"POST", path}, {"PUT", path + "/disk"}, {"PATCH", path + "/disk"}, {"DELETE", path + "/disk"}, {"DELETE", path}, {"GET", path + "?watch=1"}} {
		assert.Equal(t, 405, a.do(write[0], write[1], map[string]any{}).code, write)
	}
	for _, r := range meta.NewObject(a.must(200, "GET", "/api/v1", nil).body).Objects("resources") {
		if r.String("name") == "componentstatuses" {
			assert.Equal(t, []string{"get", "list"}, r.Strings("verbs"))
		}
	}
}

// TestComponentStatusesAfterAFailedBuild: what a Build that fails leaves is not in the
// next one's server.
func TestComponentStatusesAfterAFailedBuild(t *testing.T) {
	b := &server.Builder{Names: names.Kubernetes}
	b.Register(builtin.Kinds()...)
	_, err := b.Build(t.Context())
	require.ErrorContains(t, err, "no Authorizer")
	b.Authorizer = auth.AllowAll
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Shutdown(context.Background())) }()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/componentstatuses", nil))
	assert.Equal(t, 200, w.Code, w.Body.String())
	assert.Contains(t, w.Body.String(), `"storage"`)
}

// TestReadFails: who made no objects is not taken for one that has none.
func TestReadFails(t *testing.T) {
	type Moon struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
	}
	s := servertest.New(t, func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[Moon]{Group: "sky.example.com", Version: "v1", Behavior: registry.Behavior{
			Read: func(context.Context) ([]*meta.Object, error) {
				return nil, meta.Failure(503, "ServiceUnavailable", "clouds")
			},
		}}))
	})
	a := inProcess(t, s)
	a.must(503, "GET", "/apis/sky.example.com/v1/moons", nil)
	a.must(503, "GET", "/apis/sky.example.com/v1/namespaces/default/moons/luna", nil)
	a.must(405, "GET", "/apis/sky.example.com/v1/moons?watch=1", nil)
}
