package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// Slip is a kind with a list of type map.
type Slip struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Spec   SlipSpec   `json:"spec"`
	Status SlipStatus `json:"status,omitempty"`
}

type SlipSpec struct {
	Color string     `json:"color,omitempty"`
	Size  int32      `json:"size,omitempty"`
	Parts []SlipPart `json:"parts,omitempty" schema:"listType=map,listMapKeys=name"`
}

type SlipPart struct {
	Name string `json:"name"`
}

type SlipStatus struct {
	Size int32 `json:"size,omitempty"`
}

// slip returns the kind Slip with changes to its definition.
func slip(change func(d *registry.Definition[Slip])) *registry.Kind {
	d := registry.Definition[Slip]{Group: "example.com", Version: "v1"}
	change(&d)
	return registry.Of(d)
}

// TestBuilderErrors checks that the error of Build has the path to the invalid field and a
// suggestion.
func TestBuilderErrors(t *testing.T) {
	nothing := http.NotFoundHandler()
	good := client.Controller{
		Name: "good", MapEvent: func(client.Event) []string { return nil },
		Reconcile: func(context.Context, client.Client, string) (time.Duration, error) { return 0, nil },
	}
	of := func(types ...meta.GroupResource) client.Controller {
		c := good
		c.Types = types
		return c
	}
	admit := func(context.Context, *admission.Request) error { return nil }
	handler := func(path string, h http.Handler) func(*server.Builder) {
		return func(b *server.Builder) { b.Handlers = map[string]http.Handler{path: h} }
	}
	check := func(name string, f func(context.Context) error) func(*server.Builder) {
		return func(b *server.Builder) { b.Checks = map[string]func(context.Context) error{name: f} }
	}
	kind := func(change func(d *registry.Definition[Slip])) func(*server.Builder) {
		return func(b *server.Builder) { b.Register(slip(change)) }
	}
	column := func(c registry.Column) func(*server.Builder) {
		return kind(func(d *registry.Definition[Slip]) { d.Columns = []registry.Column{c} })
	}
	const slipKind = "kind Slip.example.com (Go type server_test.Slip): "
	for _, c := range []struct {
		name   string
		change func(b *server.Builder)
		want   string
	}{
		{"no authorizer", func(b *server.Builder) { b.Authorizer = nil }, "no Authorizer: choose one, or auth.AllowAll for a server without access control"},
		{"an authorizer that is nil", func(b *server.Builder) { b.Authorizer = auth.AuthorizerFunc(nil) }, "Authorizer is a nil auth.AuthorizerFunc: set it, or leave the field empty"},
		{"storage that is nil", func(b *server.Builder) { b.Storage = (*memstore.Store)(nil) }, "Storage is a nil *memstore.Store: set it, or leave the field empty"},
		{"an authenticator", func(b *server.Builder) { b.Authenticators = []auth.Authenticator{auth.AnonymousAccess, nil} }, "Authenticators[1] is nil"},
		{"prepare", func(b *server.Builder) { b.OnStart = append(b.OnStart, nil) }, "OnStart[0] is nil"},
		{"a kind", func(b *server.Builder) { b.Register(nil) }, "Register: kind 2 is nil"},

		{"a limit", func(b *server.Builder) { b.Limits.Watches = -1 }, "Limits.Watches: -1 is negative; zero is the default"},
		{"a time", func(b *server.Builder) { b.Limits.RequestTime = -time.Second }, "Limits.RequestTime: -1s is negative; zero is the default"},
		{"grace", func(b *server.Builder) { b.Serving.LivezGrace = -1 }, "Serving.LivezGrace: -1ns is negative"},
		{"flow control", func(b *server.Builder) { b.Serving.FlowControl = &flowcontrol.Config{} }, "Serving.FlowControl: flow control has no schemas"},
		{"a version", func(b *server.Builder) {
			b.Serving.RuntimeConfig = map[string]string{"example.com/v1": "", "example.com/v2": "false"}
		}, `Serving.RuntimeConfig["example.com/v2"]: no kind has the version "example.com/v2"; did you mean "example.com/v1"?`},

		{"a handler", handler("/x", nil), `Handlers["/x"] is nil`},
		{"a handler's function", handler("/x", http.HandlerFunc(nil)), `Handlers["/x"] is nil`},
		{"no path", handler("x", nothing), `Handlers["x"] is not a path: it must begin with a slash`},
		{"a path that is not clean", handler("/a//b/", nothing), `Handlers["/a//b/"] never matches a request; did you mean "/a/b/"?`},
		{"the core group", handler("/api", nothing), `Handlers["/api"] never matches a request: the server serves this path itself`},
		{"the groups", handler("/apis/", nothing), `Handlers["/apis/"] never matches a request: the server serves this path itself`},
		{"a document", handler("/openapi/v2", nothing), `Handlers["/openapi/v2"] never matches a request: the server serves this path itself`},
		{"health", handler("/healthz", nothing), `Handlers["/healthz"] never matches a request: the server serves this path itself`},
		{"a health check", handler("/readyz/mine", nothing), `Handlers["/readyz/mine"] never matches a request: the server serves this path itself`},
		{"metrics", handler("/metrics", nothing), `Handlers["/metrics"] never matches a request: the server serves this path itself`},
		{"version", handler("/version", nothing), `Handlers["/version"] never matches a request: the server serves this path itself`},

		{"a check", check("mine", nil), `Checks["mine"] is nil`},
		{"a check's name", check("my check", nil), `Checks["my check"] is not a valid name: use letters, digits, dots and dashes, and slashes between them`},
		{"a check of the server's", check("ping", func(context.Context) error { return nil }), `Checks["ping"] is the name of a built-in check`},

		{"a controller without a name", func(b *server.Builder) {
			b.Controllers = []client.Controller{{MapEvent: good.MapEvent, Reconcile: good.Reconcile}}
		}, "Controllers[0].Name is empty"},
		{"a duplicate controller name", func(b *server.Builder) { b.Controllers = []client.Controller{good, good} }, `Controllers[1].Name: duplicate name "good", which Controllers[0] also has`},
		{"a controller without MapEvent", func(b *server.Builder) {
			b.Controllers = []client.Controller{{Name: "c", Reconcile: good.Reconcile}}
		}, "Controllers[0].MapEvent is nil"},
		{"a controller without Reconcile", func(b *server.Builder) { b.Controllers = []client.Controller{{Name: "c", MapEvent: good.MapEvent}} }, "Controllers[0].Reconcile is nil"},
		{"a controller of an unknown resource", func(b *server.Builder) {
			b.Controllers = []client.Controller{of(meta.GroupResource{Group: "example.com", Resource: "papers"}, meta.GroupResource{Group: "example.com", Resource: "paper"})}
		}, `Controllers[0].Types[1]: no kind serves paper.example.com; did you mean "papers.example.com"?`},
		{"a controller of a resource by its spec name", func(b *server.Builder) {
			b.Names = names.Kubernetes
			b.Register(builtin.Kinds()...)
			b.Controllers = []client.Controller{of(meta.GroupResource{Group: wellknown.GroupStorage, Resource: "storageclasses"})}
		}, `Controllers[0].Types[0]: no kind serves storageclasses.storage.orch.io; did you mean "storageclasses.storage.k8s.io"? Types uses the names on the wire`},
		{"a controller of a virtual resource", func(b *server.Builder) {
			b.Register(builtin.Kinds()...)
			b.Controllers = []client.Controller{of(meta.GroupResource{Resource: "componentstatuses"})}
		}, "Controllers[0].Types[0]: componentstatuses are not stored and cause no events"},
		{"a controller of an unknown resource of the core group, with definitions", func(b *server.Builder) {
			b.Register(builtin.Kinds()...)
			b.Controllers = []client.Controller{of(meta.GroupResource{Group: "defined.example.com", Resource: "later"}, meta.GroupResource{Resource: "pod"})}
		}, `Controllers[0].Types[1]: no kind serves pod; did you mean "pods"?`},

		{"a plugin without a name", func(b *server.Builder) { b.Admission = []admission.Plugin{{Validate: admit}} }, "Admission[0].Name is empty"},
		{"a plugin that does nothing", func(b *server.Builder) { b.Admission = []admission.Plugin{{Name: "Mine"}} },
			"Admission[0] (Mine) has no effect: set Mutate, Validate, or a Setup that sets them"},
		{"two plugins", func(b *server.Builder) {
			b.Admission = []admission.Plugin{{Name: "Mine", Validate: admit}, {Name: "Mine", Mutate: admit}}
		},
			`Admission[1].Name: duplicate name "Mine", which Admission[0] also has`},
		{"a plugin of every server", func(b *server.Builder) { b.Admission = []admission.Plugin{{Name: "PodSecurity", Validate: admit}} },
			`Admission[0].Name: "PodSecurity" is the name of a built-in plugin`},
		{"an unknown plugin", func(b *server.Builder) { b.AdmissionOptions.Disable = []string{"PodSecurty"} },
			`Options.Disable[0]: there is no admission plugin "PodSecurty"; did you mean "PodSecurity"?`},

		{"keys of a list", func(b *server.Builder) {
			type thing struct {
				meta.TypeMeta   `json:",inline"`
				meta.ObjectMeta `json:"metadata"`
				Parts           []SlipPart `json:"parts" schema:"listType=map,listMapKeys=nme"`
			}
			b.Register(registry.Of(registry.Definition[thing]{Group: "example.com", Version: "v1", Kind: "Thing"}))
		}, `kind Thing.example.com (Go type server_test.thing): version "v1": Go type server_test.thing, field Parts: tag schema, listMapKeys: the items have no field "nme"; did you mean "name"?`},
		{"a rule", func(b *server.Builder) {
			type thing struct {
				meta.TypeMeta   `json:",inline"`
				meta.ObjectMeta `json:"metadata"`
				Size            int32 `json:"size" schema:"rule=self > nobody"`
			}
			b.Register(registry.Of(registry.Definition[thing]{Group: "example.com", Version: "v1", Kind: "Thing"}))
		}, "undeclared reference to 'nobody'"},
		{"a column", column(registry.Column{Name: "Color", Type: "string", JSONPath: ".spec.colour"}),
			slipKind + `version "v1": column "Color": the path .spec.colour does not exist in the schema; did you mean "spec.color"?`},
		{"a column of text", column(registry.TextColumn("Color", "", "spec", "clor")),
			slipKind + `version "v1": column "Color": the path .spec.clor does not exist in the schema; did you mean "spec.color"?`},
		{"a priority", column(registry.Column{Name: "Color", Type: "string", JSONPath: ".spec.color", Priority: -1}), slipKind + `column "Color": Priority -1 is negative`},
		{"two columns", kind(func(d *registry.Definition[Slip]) {
			d.Columns = []registry.Column{registry.AgeColumn(), registry.AgeColumn()}
		}), slipKind + `version "v1": duplicate column "Age"`},
		{"a field", kind(func(d *registry.Definition[Slip]) { d.Fields = []registry.SelectableField{{Name: "spec.colr"}} }),
			slipKind + `selectable field "spec.colr" does not exist in the schema; did you mean "spec.color"?`},
		{"two fields", kind(func(d *registry.Definition[Slip]) {
			d.Fields = []registry.SelectableField{{Name: "spec.color"}, {Name: "spec.color"}}
		}),
			slipKind + `duplicate selectable field "spec.color"`},
		{"scale", kind(func(d *registry.Definition[Slip]) {
			d.Scale = &registry.Scale{SpecReplicas: ".spec.sze", StatusReplicas: ".status.size"}
		}),
			slipKind + `scale: the path ".spec.sze" does not exist in the schema; did you mean "spec.size"?`},
		{"short names", kind(func(d *registry.Definition[Slip]) { d.ShortNames = []string{"sl", "sl"} }), slipKind + `ShortNames: duplicate "sl"`},
		{"a replacement", kind(func(d *registry.Definition[Slip]) {
			d.Replacement = meta.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Slip"}
		}),
			slipKind + `version "v1" has a Replacement but is not deprecated: set Deprecated or Lifetime.Deprecated`},
		{"metadata", kind(func(d *registry.Definition[Slip]) {
			d.Subresources = []registry.Subresource{{Name: "paint", Merge: func(obj, in *meta.Object) {}, Metadata: []string{"label"}}}
		}), slipKind + `subresource "paint": Metadata[0]: "label" is not one of labels, annotations, finalizers, ownerReferences; did you mean "labels"?`},
		{"a write-only act", kind(func(d *registry.Definition[Slip]) {
			d.Subresources = []registry.Subresource{{Name: "paint", WriteOnly: true, Act: func(context.Context, *registry.Call) (*meta.Object, error) { return nil, nil }}}
		}), slipKind + `subresource "paint": WriteOnly needs Merge`},
		{"a pool", kind(func(d *registry.Definition[Slip]) { d.Allocator = &registry.Allocator{} }), slipKind + "Allocator needs Values and Allocate"},
		{"an unknown subresource that a version lacks", kind(func(d *registry.Definition[Slip]) {
			d.Status = true
			d.Versions = []registry.VersionOf[Slip]{registry.Spoke[Slip, Slip]{
				Version: "v1beta1", MissingSubresources: []string{"statuss"}, ToHub: func(*Slip, *Slip) error { return nil }, FromHub: func(*Slip, *Slip) error { return nil },
			}}
		}), slipKind + `version "v1beta1": MissingSubresources[0]: the kind has no subresource "statuss"; did you mean "status"?`},
		{"another profile", kind(func(d *registry.Definition[Slip]) { d.Group = "slips.k8s.io" }),
			`kind Slip.slips.k8s.io (Go type server_test.Slip): Group "slips.k8s.io" belongs to the naming profile kubernetes, but the server uses orch`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &server.Builder{Authorizer: auth.AllowAll}
			b.Register(slip(func(d *registry.Definition[Slip]) { d.Kind = "Paper" }))
			c.change(b)
			_, err := b.Build(t.Context())
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestBuilderErrorsAreJoined checks that Build reports the errors of fields, kinds and plugins
// together.
func TestBuilderErrorsAreJoined(t *testing.T) {
	b := &server.Builder{
		Limits: server.Limits{Body: -1, Depth: -2}, Handlers: map[string]http.Handler{"x": nil, "/api": nil},
		Controllers: make([]client.Controller, 2), AdmissionOptions: admission.Options{Enable: []string{"Nothing"}},
		Checks: map[string]func(context.Context) error{"": nil}, Serving: server.Serving{RuntimeConfig: map[string]string{"v7": "maybe"}},
	}
	b.Register(nil, slip(func(d *registry.Definition[Slip]) { d.Fields = []registry.SelectableField{{Name: "nope"}} }))
	_, err := b.Build(t.Context())
	for _, part := range []string{
		"no Authorizer", "Limits.Body", "Limits.Depth", `Handlers["x"]`, `Handlers["/api"]`, "Controllers[0].Name", "Controllers[1].Reconcile",
		"Options.Enable[0]", `Checks[""]`, `Serving.RuntimeConfig["v7"]: "maybe"`, "Register: kind 1 is nil", `selectable field "nope"`,
	} {
		assert.ErrorContains(t, err, part)
	}
}

// TestBuildTwiceFails checks that a second Build fails and does not affect the first server.
func TestBuildTwiceFails(t *testing.T) {
	store := memstore.New(memstore.Options{})
	b := &server.Builder{Authorizer: auth.AllowAll, Storage: store}
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	_, err = b.Build(t.Context())
	assert.ErrorContains(t, err, "Build called twice")
	_, err = store.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")})
	assert.NoError(t, err)
}

// TestHandlerWithLongestPrefixServes checks which of several handlers serves a path.
func TestHandlerWithLongestPrefixServes(t *testing.T) {
	handlers := map[string]http.Handler{}
	for _, at := range []string{"/", "/a/", "/a/b/", "/a/b/c/", "/a/b/exact"} {
		handlers[at] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(at)) })
	}
	s, err := (&server.Builder{Authorizer: auth.AllowAll, Handlers: handlers}).Build(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	for path, want := range map[string]string{"/z": "/", "/a/x": "/a/", "/a/b/x": "/a/b/", "/a/b/c/d/e": "/a/b/c/", "/a/b/exact": "/a/b/exact"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, want, w.Body.String(), path)
	}
}

// allOf is an Authorizer that is valid if it is nil.
type allOf []auth.Authorizer

func (all allOf) Authorize(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
	for _, x := range all {
		if d, why, err := x.Authorize(ctx, a); d != auth.Allow || err != nil {
			return d, why, err
		}
	}
	return auth.Allow, "", nil
}

// TestBuildAcceptsUnusualFields checks that Build accepts handlers below the server's own paths,
// and an Authorizer that is a nil slice.
func TestBuildAcceptsUnusualFields(t *testing.T) {
	t.Parallel()
	below := []string{"/metrics/", "/metrics/slis/", "/version/"}
	b := &server.Builder{Authorizer: allOf(nil), Handlers: map[string]http.Handler{}}
	for _, at := range below {
		b.Handlers[at] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	}
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Shutdown(context.Background())) })
	for _, at := range below {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, at+"x", nil))
		assert.Equal(t, http.StatusTeapot, w.Code, at)
	}
}
