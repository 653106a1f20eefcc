package conformance

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	utilproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        description: A Widget does things.
        required: [spec]
        properties:
          spec:
            type: object
            description: What it shall do.
            required: [size]
            properties:
              size: {type: integer, minimum: 1, default: 3, description: How big it is.}
              color: {type: string, enum: [red, blue], nullable: true, example: red, externalDocs: {url: https://example.com/colors}}
              port: {x-kubernetes-int-or-string: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              inner: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set, default: [a, b]}
              options: {type: object, properties: {on: {type: boolean, default: true}, ratio: {type: number, default: 0.5}}, default: {on: false}}
              mode: {type: string, enum: [a, null], nullable: true, default: a}
              levels: {type: array, items: {type: integer, enum: [1, 2]}, default: [1]}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, weight: {type: number}}
              either:
                type: object
                oneOf: [{required: [a]}, {required: [b]}]
                properties: {a: {type: string}, b: {type: string, not: {enum: [x]}}}
              more: {type: object, additionalProperties: {type: string, pattern: "^a"}, x-kubernetes-map-type: atomic}
          status: {type: object, properties: {seen: {type: boolean}}}
`

func newServer(t *testing.T) (*servertest.Server, *discovery.DiscoveryClient) {
	s := servertest.New(t, func(b *server.Builder) { b.Register(registry.FromCRD([]byte(widgets))) })
	c, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: s.Host(), Transport: s.Transport()})
	require.NoError(t, err)
	return s, c
}

// canonical makes the two spellings of YAML the same.
func canonical(t *testing.T, m protoreflect.Message) {
	if n := m.Descriptor().FullName(); n == "openapi.v2.Any" || n == "openapi.v3.Any" {
		f := m.Descriptor().Fields().ByName("yaml")
		var v any
		require.NoError(t, yaml.Unmarshal([]byte(m.Get(f).String()), &v))
		b, err := json.Marshal(v)
		require.NoError(t, err)
		m.Set(f, protoreflect.ValueOfString(string(b)))
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				canonical(t, v.List().Get(i).Message())
			}
		default:
			canonical(t, v.Message())
		}
		return true
	})
}

func same(t *testing.T, want, got proto.Message) {
	t.Helper()
	require.Empty(t, got.ProtoReflect().GetUnknown())
	canonical(t, want.ProtoReflect())
	canonical(t, got.ProtoReflect())
	if !proto.Equal(want, got) {
		compare(t, "", want.ProtoReflect(), got.ProtoReflect())
		t.Error("the protobuf form is not that of the JSON form")
	}
}

// compare reports the places where two messages differ.
func compare(t *testing.T, path string, a, b protoreflect.Message) {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if a.Has(f) != b.Has(f) {
			t.Errorf("%s.%s: %v, %v", path, f.Name(), a.Get(f), b.Get(f))
			continue
		}
		switch {
		case !a.Has(f) || f.Message() == nil && f.IsList():
		case f.IsList():
			if a.Get(f).List().Len() != b.Get(f).List().Len() {
				t.Errorf("%s.%s: %v, %v", path, f.Name(), a.Get(f), b.Get(f))
				continue
			}
			for i := range a.Get(f).List().Len() {
				compare(t, path+"."+string(f.Name()), a.Get(f).List().Get(i).Message(), b.Get(f).List().Get(i).Message())
			}
		case f.Message() != nil:
			compare(t, path+"."+string(f.Name()), a.Get(f).Message(), b.Get(f).Message())
		case !a.Get(f).Equal(b.Get(f)):
			t.Errorf("%s.%s: %v, %v", path, f.Name(), a.Get(f), b.Get(f))
		}
	}
}

// TestProtobufV2 checks that the protobuf form of version 2 equals the result of gnostic for the JSON form.
func TestProtobufV2(t *testing.T) {
	s, c := newServer(t)
	got, err := c.OpenAPISchema()
	require.NoError(t, err)
	body, err := c.RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", runtime.ContentTypeJSON).Do(t.Context()).Raw()
	require.NoError(t, err)
	want, err := openapi_v2.ParseDocument(body)
	require.NoError(t, err)
	same(t, want, got)
	_ = s
}

// TestProtobufV3 checks the same for version 3, for every group version.
func TestProtobufV3(t *testing.T) {
	_, c := newServer(t)
	paths, err := c.OpenAPIV3().Paths()
	require.NoError(t, err)
	require.Contains(t, paths, "apis/example.com/v1")
	for path, gv := range paths {
		body, err := gv.Schema(runtime.ContentTypeJSON)
		require.NoError(t, err, path)
		want, err := openapi_v3.ParseDocument(body)
		require.NoError(t, err, path)
		data, err := gv.Schema(openapi.ContentTypeOpenAPIV3PB)
		require.NoError(t, err, path)
		got := &openapi_v3.Document{}
		require.NoError(t, proto.Unmarshal(data, got), path)
		same(t, want, got)
	}
}

// TestPathsBelowPrefixAreFound checks that clients find the documents of a server below a path prefix.
func TestPathsBelowPrefixAreFound(t *testing.T) {
	s, _ := newServer(t)
	h := httptest.NewServer(http.StripPrefix("/below/here", s.Server))
	defer h.Close()
	c, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: h.URL + "/below/here"})
	require.NoError(t, err)
	paths, err := c.OpenAPIV3().Paths()
	require.NoError(t, err)
	body, err := paths["api/v1"].Schema(runtime.ContentTypeJSON)
	require.NoError(t, err)
	assert.Contains(t, string(body), "io.k8s.api.core.v1.ConfigMap")
	old, err := c.RESTClient().Get().AbsPath("/openapi/v3/api/v1").Param("hash", "old").Do(t.Context()).Raw()
	require.NoError(t, err, "an address of before leads to that of now")
	assert.Equal(t, body, old)
}

// TestModelsResolveEveryDefinition checks that the models of both versions have every definition and
// resolve all references.
func TestModelsResolveEveryDefinition(t *testing.T) {
	_, c := newServer(t)
	doc, err := c.OpenAPISchema()
	require.NoError(t, err)
	models, err := utilproto.NewOpenAPIData(doc)
	require.NoError(t, err)
	for _, name := range []string{"io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment", "com.example.v1.Widget", "com.example.v1.WidgetList"} {
		assert.NotNil(t, models.LookupModel(name), name)
	}
	root := openapi3.NewRoot(c.OpenAPIV3())
	versions, err := root.GroupVersions()
	require.NoError(t, err)
	for _, gv := range versions {
		doc, err := root.GVSpec(gv)
		require.NoError(t, err, gv)
		for name, def := range doc.Components.Schemas {
			walk(def, func(s *spec.Schema) {
				if ref := s.Ref.String(); ref != "" {
					assert.Contains(t, doc.Components.Schemas, strings.TrimPrefix(ref, "#/components/schemas/"), name)
				}
			})
		}
		assert.NotEmpty(t, doc.Paths.Paths, gv)
	}
	widget, err := root.GVSpec(schema.GroupVersion{Group: "example.com", Version: "v1"})
	require.NoError(t, err)
	props := widget.Components.Schemas["com.example.v1.Widget"].Properties["spec"].Properties
	assert.Equal(t, "map", props["parts"].Extensions["x-kubernetes-list-type"])
	assert.Equal(t, []any{"name"}, props["parts"].Extensions["x-kubernetes-list-map-keys"])
	assert.Equal(t, true, props["port"].Extensions["x-kubernetes-int-or-string"])
	assert.Equal(t, true, props["free"].Extensions["x-kubernetes-preserve-unknown-fields"])
	assert.Equal(t, true, props["inner"].Extensions["x-kubernetes-embedded-resource"])
	assert.Len(t, props["either"].OneOf, 2)
	assert.True(t, props["color"].Nullable)
}

func walk(s *spec.Schema, visit func(*spec.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	for _, p := range s.Properties {
		walk(&p, visit)
	}
	for _, p := range s.AllOf {
		walk(&p, visit)
	}
	if s.Items != nil {
		walk(s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil {
		walk(s.AdditionalProperties.Schema, visit)
	}
}
