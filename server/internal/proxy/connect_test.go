package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// dial are the options of a connection.
type dial struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Command         []string `json:"command,omitempty"`
	Container       string   `json:"container,omitempty"`
	Stdin           bool     `json:"stdin,omitempty"`
	TTY             bool     `json:"tty,omitempty"`
	Port            int32    `json:"port,omitempty"`
}

// nowhere is a Connector that fails.
type nowhere struct{}

func (nowhere) Connect(context.Context, *registry.Target) (*url.URL, http.RoundTripper, error) {
	return &url.URL{Scheme: "http", Host: "nowhere"}, http.NewFileTransportFS(fstest.MapFS{}), nil
}

// TestConnectSubresourceAdmission: admission sees a request to a connecting subresource as a CONNECT with the options
// as the object, and a request to a subresource that returns a body as a CREATE of that body.
func TestConnectSubresourceAdmission(t *testing.T) {
	t.Parallel()
	options := registry.Of(registry.Definition[dial]{Version: "v1", Kind: "DialOptions"})
	var asked *meta.Object
	ask := func(_ context.Context, c *registry.Call) (*registry.Target, error) {
		asked = c.Object
		return &registry.Target{}, nil
	}
	kind := func(name string) meta.GroupVersionKind { return meta.GroupVersionKind{Version: "v1", Kind: name} }
	var seen []*admission.Request
	s := servertest.New(t, func(b *server.Builder) {
		b.Connector = nowhere{}
		b.Kind("", "ConfigMap").Subresources = []registry.Subresource{
			{Name: "dial", Body: options, Connect: &registry.Connection{Style: registry.Streams, Target: ask}},
			{Name: "read", Body: options, Connect: &registry.Connection{Target: ask}},
			{Name: "ask", Body: options, Act: func(_ context.Context, c *registry.Call) (*meta.Object, error) { return c.Object, nil }},
		}
		b.Admission = []admission.Plugin{{
			Name: "Journal", Rules: []admission.Rule{{Resources: []string{"configmaps/*"}}},
			Mutate: func(_ context.Context, r *admission.Request) error {
				seen = append(seen, r)
				if r.Subresource != "" {
					r.Object.Set("set", "container")
				}
				return nil
			},
		}, {
			Name:  "NoShell",
			Rules: []admission.Rule{{Operations: []admission.Operation{admission.Connect}, Resources: []string{"configmaps/dial"}}},
			Validate: func(_ context.Context, r *admission.Request) error {
				if len(r.Object.List("command")) > 0 && r.Object.List("command")[0] == "sh" {
					return errors.New("no shells")
				}
				return nil
			},
		}}
	})
	a := apitest.InProcess(t, s)
	const at = apitest.ConfigMapsPath + "/x"
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
	seen = nil
	for _, method := range []string{"GET", "POST"} {
		got := a.Must(400, method, at+"/dial?command=ls&command=-l&stdin=true&tty=false&port=22&stray=1&container=c", nil)
		assert.Equal(t, "Upgrade request required", got.Body["message"])
		assert.Equal(t, map[string]any{"apiVersion": "v1", "kind": "DialOptions", "metadata": map[string]any{},
			"command": []any{"ls", "-l"}, "stdin": true, "port": int64(22), "container": "set"}, withoutZeros(asked.Tree()))
		require.Len(t, seen, 1)
		r := seen[0]
		assert.Equal(t, admission.Connect, r.Operation)
		assert.Equal(t, kind("DialOptions"), r.Kind)
		assert.Equal(t, []string{"configmaps", "dial", "default", "x"}, []string{r.Resource.Resource, r.Subresource, r.Namespace, r.Name})
		assert.Nil(t, r.Options)
		assert.Nil(t, r.Old)
		seen, asked = nil, nil

		refused := a.Must(403, method, at+"/dial?command=sh", nil)
		assert.Contains(t, refused.Body["message"], "no shells")
		assert.Contains(t, a.Must(400, method, at+"/dial?port=x", nil).Body["message"], "invalid syntax")
		assert.Nil(t, asked)
		seen = nil
	}
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		a.Must(405, method, at+"/dial", nil)
	}
	assert.Contains(t, a.Must(400, "GET", at+"/dial", nil, "Connection", "upgrade", "Upgrade", "x").Body["message"], "cannot be upgraded")
	seen = nil

	a.Must(200, "GET", at+"/read?container=c", nil)
	a.Must(405, "POST", at+"/read", nil)
	assert.Equal(t, "c", asked.String("container"))
	assert.Empty(t, seen) // a read is not a CONNECT

	a.Must(201, "POST", at+"/ask", map[string]any{"apiVersion": "v1", "kind": "DialOptions"})
	require.Len(t, seen, 1)
	assert.Equal(t, admission.Create, seen[0].Operation)
	assert.Equal(t, kind("DialOptions"), seen[0].Kind)
	assert.Equal(t, "CreateOptions", seen[0].Options.Kind())
	a.Must(405, "GET", at+"/ask", nil)
}

// withoutZeros leaves out the fields that are false.
func withoutZeros(tree map[string]any) map[string]any {
	for name, value := range tree {
		if value == false {
			delete(tree, name)
		}
	}
	return tree
}

// mode is the body of a subresource that acts and of a kind that is not stored.
type mode struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Mode            string `json:"mode" schema:"required,enum=a|b"`
	Level           int32  `json:"level,omitempty" schema:"default=3"`
}

// TestActSubresourceValidatesItsBody: the body of a subresource that acts without storing is
// defaulted before admission and validated after it, before the action.
func TestActSubresourceValidatesItsBody(t *testing.T) {
	t.Parallel()
	var acted []*meta.Object
	act := func(_ context.Context, c *registry.Call) (*meta.Object, error) {
		acted = append(acted, c.Object)
		return c.Object, nil
	}
	kind := registry.Definition[mode]{Group: "example.com", Version: "v1", Kind: "Mode", Scope: registry.Cluster,
		Validate: func(w *registry.Change[mode]) {
			if w.New.Mode == "b" && w.New.Level > 5 {
				w.Forbidden(check.At("level"), "is too high")
			}
		},
		Behavior: registry.Behavior{Act: act}}
	s := servertest.New(t, func(b *server.Builder) {
		b.Kind("", "ConfigMap").Subresources = []registry.Subresource{
			{Name: "act", Body: registry.Of(kind), Act: act},
			{Name: "join", Body: registry.Of(kind), Connect: &registry.Connection{Style: registry.Streams, Target: func(ctx context.Context, c *registry.Call) (*registry.Target, error) {
				_, err := act(ctx, c)
				return nil, err
			}}},
		}
		b.Register(registry.Of(kind))
	})
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
	for _, path := range []string{apitest.ConfigMapsPath + "/x/act", "/apis/example.com/v1/modes"} {
		for body, want := range map[string]string{
			`{"mode":"zzz"}`:         `Mode.example.com "" is invalid: mode: Unsupported value: "zzz"`,
			`{"mode":"b","level":9}`: `Mode.example.com "" is invalid: level: Forbidden: is too high`,
			`{}`:                     `Mode.example.com "" is invalid: mode: Required value`,
		} {
			require.Contains(t, a.Must(422, "POST", path, body, "Content-Type", "application/json").Body["message"], want)
		}
		require.Empty(t, acted)
		a.Must(201, "POST", path, `{"mode":"a"}`, "Content-Type", "application/json")
		require.Len(t, acted, 1)
		require.Equal(t, int64(3), acted[0].Int("level"))
		acted = nil
	}
	a.Must(422, "GET", apitest.ConfigMapsPath+"/x/join?mode=zzz", nil)
	require.Empty(t, acted)
	a.Must(204, "GET", apitest.ConfigMapsPath+"/x/join?mode=a", nil)
	require.Len(t, acted, 1)
	require.Equal(t, int64(3), acted[0].Int("level"))
}
