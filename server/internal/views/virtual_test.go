package views_test

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
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestComponentStatuses checks that ComponentStatuses show the checks of the store and of the
// program in every format, and that they are read-only.
func TestComponentStatuses(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) {
		b.Checks = map[string]func(context.Context) error{"disk": func(context.Context) error { return errors.New("nearly full") }}
	})
	a := apitest.InProcess(t, s)
	const path = "/api/v1/componentstatuses"
	got := a.Must(200, "GET", path, nil)
	assert.Equal(t, []string{`299 - "v1 ComponentStatus is deprecated in v1.19+"`}, got.Header["Warning"])
	list := meta.NewObject(got.Body)
	assert.Equal(t, "ComponentStatusList", list.Kind())
	assert.Equal(t, map[string]any{}, list.Map("metadata"))
	state := func(name, status, message string) any {
		return map[string]any{
			"metadata": map[string]any{"name": name}, "conditions": []any{map[string]any{"type": "Healthy", "status": status, "message": message}},
		}
	}
	assert.Contains(t, list.List("items"), state("storage", "True", "ok"))
	assert.Contains(t, list.List("items"), state("disk", "False", "nearly full"))

	disk := meta.NewObject(a.Must(200, "GET", path+"/disk", nil).Body)
	assert.Equal(t, "ComponentStatus disk", disk.Kind()+" "+disk.Name())
	a.Must(404, "GET", path+"/none", nil)
	assert.Len(t, meta.NewObject(a.Must(200, "GET", path+"?fieldSelector=metadata.name%3Ddisk", nil).Body).List("items"), 1)
	assert.Empty(t, meta.NewObject(a.Must(200, "GET", path+"?labelSelector=a%3Db", nil).Body).List("items"))
	a.Must(400, "GET", path+"?fieldSelector=conditions%3Db", nil)
	for _, at := range []string{path, path + "/disk"} {
		rows := meta.NewObject(a.Do("GET", at, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Body).Objects("rows")
		require.NotEmpty(t, rows, at)
		assert.Contains(t, [][]any{{"disk", "Unhealthy", "nearly full", ""}, {"storage", "Healthy", "ok", ""}}, rows[0].List("cells"))
		assert.Equal(t, 200, a.Do("GET", at, nil, "Accept", "application/vnd.kubernetes.protobuf").Code)
	}
	for _, write := range [][2]string{{"POST", path}, {"PUT", path + "/disk"}, {"PATCH", path + "/disk"}, {"DELETE", path + "/disk"}, {"DELETE", path}, {"GET", path + "?watch=1"}} {
		assert.Equal(t, 405, a.Do(write[0], write[1], map[string]any{}).Code, write)
	}
	for _, r := range meta.NewObject(a.Must(200, "GET", "/api/v1", nil).Body).Objects("resources") {
		if r.String("name") == "componentstatuses" {
			assert.Equal(t, []string{"get", "list"}, r.Strings("verbs"))
		}
	}
}

// TestComponentStatusesAfterFailedBuild checks that a failed Build leaves nothing in the kinds of
// the Builder.
func TestComponentStatusesAfterFailedBuild(t *testing.T) {
	t.Parallel()
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

// TestFailedReadOfVirtualKind checks that an error of Read is not taken for an empty list.
func TestFailedReadOfVirtualKind(t *testing.T) {
	t.Parallel()
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
	a := apitest.InProcess(t, s)
	a.Must(503, "GET", "/apis/sky.example.com/v1/moons", nil)
	a.Must(503, "GET", "/apis/sky.example.com/v1/namespaces/default/moons/luna", nil)
	a.Must(405, "GET", "/apis/sky.example.com/v1/moons?watch=1", nil)
}
