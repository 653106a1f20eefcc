package server_test

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
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
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// discoveredKeys returns the resources in discovery as keys of Serving.RuntimeConfig.
func discoveredKeys(a *apitest.Client) (keys []string) {
	roots := []string{}
	for _, v := range a.Must(200, "GET", "/api", nil).Body["versions"].([]any) {
		roots = append(roots, "/api/"+v.(string))
	}
	for _, g := range a.Must(200, "GET", "/apis", nil).Body["groups"].([]any) {
		for _, v := range g.(map[string]any)["versions"].([]any) {
			roots = append(roots, "/apis/"+v.(map[string]any)["groupVersion"].(string))
		}
	}
	for _, root := range roots {
		list := a.Must(200, "GET", root, nil).Body
		for _, r := range list["resources"].([]any) {
			if name := r.(map[string]any)["name"].(string); !strings.Contains(name, "/") {
				keys = append(keys, list["groupVersion"].(string)+"/"+name)
			}
		}
	}
	return keys
}

// kindsOfEachStability returns a kind of each stability, and a kind of an old version in the core
// group.
func kindsOfEachStability() []*registry.Kind {
	var kinds []*registry.Kind
	for name, version := range map[string]string{"Ga": "v1", "Beta": "v2beta1", "Alpha": "v1alpha3"} {
		kinds = append(kinds, registry.Of(registry.Definition[Slip]{Group: "example.com", Version: version, Kind: name, Scope: registry.Namespaced}))
	}
	for name, version := range map[string]string{"Old": "v1beta3", "Core": "v1"} {
		kinds = append(kinds, registry.Of(registry.Definition[Slip]{Version: version, Kind: name, Scope: registry.Namespaced}))
	}
	return kinds
}

// TestRuntimeConfig checks that the most specific key decides.
func TestRuntimeConfig(t *testing.T) {
	const ga, beta, alpha, old, core = "example.com/v1/gas", "example.com/v2beta1/betas", "example.com/v1alpha3/alphas", "v1beta3/olds", "v1/cores"
	for _, c := range []struct{ config, want string }{
		{"", "ga beta alpha old core"},
		{"api/all", "ga beta alpha old core"},
		{"api/all=false,api/ga", "ga core"},
		{"api/all=false,api/ga=,api/beta=true", "ga beta old core"},
		{"api/alpha=false", "ga beta old core"},
		{"api/beta=0", "ga alpha core"},
		{"api/beta=false,api/legacy=true", "ga alpha old core"},
		{"api/legacy=false", "ga beta alpha core"},
		{"v1=false", "ga beta alpha old"},
		{"api/v1=false", "ga beta alpha old"},
		{"api/v1/cores=false", "ga beta alpha old"},
		{"api/ga=false,v1=true", "beta alpha old core"},
		{"example.com/v1=false", "beta alpha old core"},
		{"example.com/v1=false,example.com/v1/gas=true", "ga beta alpha old core"},
		{"example.com/v1=true,example.com/v1/gas=false", "beta alpha old core"},
		{"api/all=false,example.com/v2beta1/betas", "beta"},
	} {
		t.Run(c.config, func(t *testing.T) {
			b := &server.Builder{Authorizer: auth.AllowAll, Serving: server.Serving{RuntimeConfig: map[string]string{}}}
			b.Register(kindsOfEachStability()...)
			for word := range strings.SplitSeq(c.config, ",") {
				if key, value, _ := strings.Cut(word, "="); key != "" {
					b.Serving.RuntimeConfig[key] = value
				}
			}
			s, err := b.Build(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
			a := apitest.NewClient(t, "http://in-process", &http.Client{Transport: s.Transport()})
			hasCore := slices.Contains(strings.Fields(c.want), "core")
			assert.Equal(t, map[bool]int{true: 200, false: 404}[hasCore], a.Do("GET", "/api/v1", nil).Code)
			got, document := discoveredKeys(a), string(a.Must(200, "GET", "/openapi/v2", nil).Raw)
			var want []string
			for name, key := range map[string]string{"ga": ga, "beta": beta, "alpha": alpha, "old": old, "core": core} {
				on := slices.Contains(strings.Fields(c.want), name)
				if on {
					want = append(want, key)
				}
				version, plural, _ := strings.Cut(key, "/v")
				path := "/apis/" + version + "/v" + strings.Replace(plural, "/", "/namespaces/default/", 1)
				if name == "old" || name == "core" {
					path = "/api/" + strings.Replace(key, "/", "/namespaces/default/", 1)
				}
				assert.Equal(t, map[bool]int{true: 200, false: 404}[on], a.Do("GET", path, nil).Code, path)
				assert.Equal(t, on, strings.Contains(document, strings.Replace(path, "default", "{namespace}", 1)+`"`), "%s in OpenAPI", path)
			}
			assert.ElementsMatch(t, want, got)
		})
	}
}

// TestRuntimeConfigErrors checks the errors of Build for invalid keys and values.
func TestRuntimeConfigErrors(t *testing.T) {
	for _, c := range []struct {
		config map[string]string
		want   string
	}{
		{map[string]string{"example.com": "false"}, `Serving.RuntimeConfig["example.com"]: this is a group; its versions are example.com/v1, example.com/v1alpha3, example.com/v2beta1`},
		{map[string]string{"example.com/v3": ""}, `Serving.RuntimeConfig["example.com/v3"]: no kind has the version "example.com/v3"; did you mean "example.com/v1"?`},
		{map[string]string{"example.com/v1/gsa": "false"}, `Serving.RuntimeConfig["example.com/v1/gsa"]: no kind of this version has the plural "gsa"; did you mean "example.com/v1/gas"?`},
		{map[string]string{"v1/gsa": "false"}, `Serving.RuntimeConfig["v1/gsa"]: no kind of this version has the plural "gsa"`},
		{map[string]string{"api/gamma": "false"}, `Serving.RuntimeConfig["api/gamma"]: no kind has the version "api/gamma"`},
		{map[string]string{"": "false"}, `Serving.RuntimeConfig[""]: no kind has the version ""`},
		{map[string]string{"api/all": "yes"}, `Serving.RuntimeConfig["api/all"]: "yes" is neither true nor false`},
		{map[string]string{"api/v1": "", "v1": "false"}, `Serving.RuntimeConfig["v1"]: duplicate of "api/v1"`},
		{map[string]string{"api/all": "false"}, `Serving.RuntimeConfig disables every version`},
	} {
		b := &server.Builder{Authorizer: auth.AllowAll, Serving: server.Serving{RuntimeConfig: c.config}}
		b.Register(kindsOfEachStability()...)
		_, err := b.Build(t.Context())
		assert.ErrorContains(t, err, c.want)
	}
}

// TestEachKindCanBeDisabled disables each built-in kind in turn on a server with all controllers,
// except kinds that requests themselves need. The server starts, its controllers finish, and
// nothing is logged.
func TestEachKindCanBeDisabled(t *testing.T) {
	all := discoveredKeys(apitest.InProcess(t, servertest.New(t)))
	for _, k := range builtin.Kinds() {
		config := map[string]string{}
		for i := range k.Versions {
			v := &k.Versions[i]
			gv := meta.GroupVersionKind{Group: names.Kubernetes.Group(cmp.Or(v.Group, k.Group)), Version: v.Name}
			if key := gv.APIVersion() + "/" + plural(k); slices.Contains(all, key) {
				config[key] = "false"
			}
		}
		if len(config) == 0 {
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			log := &apitest.LogBuffer{}
			s := servertest.New(t, func(b *server.Builder) {
				addAllControllers(t, b)
				b.Serving.RuntimeConfig = config
				b.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			a := apitest.InProcess(t, s)
			a.HTTP = s.As("root", auth.Masters).Client()
			left := discoveredKeys(a)
			for key := range maps.Keys(config) {
				assert.NotContains(t, left, key)
			}
			if k.Kind != "Namespace" {
				a.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"going"}}`)
				a.Do("POST", "/api/v1/namespaces/going/configmaps", apitest.NewConfigMap("left"))
				a.Must(200, "DELETE", "/api/v1/namespaces/going", nil)
				s.Settle()
				assert.Equal(t, 404, a.Do("GET", "/api/v1/namespaces/going", nil).Code)
			}
			s.Settle()
			assert.Equal(t, 200, a.Do("GET", "/readyz", nil).Code)
			assert.Empty(t, log.String())
		})
	}
}

// plural returns the resource name of a kind.
func plural(k *registry.Kind) string {
	if k.Plural != "" {
		return k.Plural
	}
	return strings.ToLower(k.Kind) + "s"
}

// TestRuntimeConfigKeepsStoredObjects checks that the objects of a disabled kind are kept, and that
// objects stored in a disabled version are served in the other versions.
func TestRuntimeConfigKeepsStoredObjects(t *testing.T) {
	first := memstore.New(memstore.Options{})
	build := func(store *memstore.Store, config map[string]string) *apitest.Client {
		b := &server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes, Storage: store, Serving: server.Serving{RuntimeConfig: config}}
		b.Register(builtin.Kinds()...)
		s, err := b.Build(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
		return apitest.NewClient(t, "http://in-process", &http.Client{Transport: s.Transport()})
	}
	const v1, v2 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	a := build(first, nil)
	a.Must(201, "POST", v2, `{"metadata":{"name":"h"},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`)

	second := first.Fork()
	a = build(second, map[string]string{"autoscaling/v2": "false"})
	assert.Equal(t, 404, a.Do("GET", v2+"/h", nil).Code)
	assert.EqualValues(t, 3, a.Must(200, "GET", v1+"/h", nil).Body["spec"].(map[string]any)["maxReplicas"])
	a.Must(200, "PATCH", v1+"/h", `{"spec":{"maxReplicas":4}}`)

	third := second.Fork()
	a = build(third, map[string]string{"autoscaling/v1/horizontalpodautoscalers": "false", "autoscaling/v2/horizontalpodautoscalers": "0"})
	assert.Equal(t, 404, a.Do("GET", v1+"/h", nil).Code)
	assert.Equal(t, 404, a.Do("GET", "/apis/autoscaling", nil).Code)
	assert.NotContains(t, string(a.Must(200, "GET", "/openapi/v2", nil).Raw), "HorizontalPodAutoscaler")

	a = build(third.Fork(), nil)
	assert.EqualValues(t, 4, a.Must(200, "GET", v2+"/h", nil).Body["spec"].(map[string]any)["maxReplicas"])
}
