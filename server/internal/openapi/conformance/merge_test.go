package conformance

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/openapi3"
	utilproto "k8s.io/kube-openapi/pkg/util/proto"
)

// TestPatchesFromDocumentsMatchGoTypes checks that a client computes the same patches from the documents
// as from the Go types of the kinds: every list of every kind merges by the same key.
func TestPatchesFromDocumentsMatchGoTypes(t *testing.T) {
	_, c := newServer(t)
	doc, err := c.OpenAPISchema()
	require.NoError(t, err)
	models, err := utilproto.NewOpenAPIData(doc)
	require.NoError(t, err)
	root := openapi3.NewRoot(c.OpenAPIV3())
	for name, obj := range map[string]any{
		"io.k8s.api.core.v1.Pod": corev1.Pod{}, "io.k8s.api.core.v1.Service": corev1.Service{}, "io.k8s.api.core.v1.ServiceAccount": corev1.ServiceAccount{},
		"io.k8s.api.core.v1.PodTemplate": corev1.PodTemplate{}, "io.k8s.api.apps.v1.Deployment": appsv1.Deployment{}, "io.k8s.api.core.v1.Namespace": corev1.Namespace{},
	} {
		gv := schema.GroupVersion{Version: "v1"}
		if strings.Contains(name, ".apps.") {
			gv.Group = "apps"
		}
		v3, err := root.GVSpec(gv)
		require.NoError(t, err)
		want, err := strategicpatch.NewPatchMetaFromStruct(obj)
		require.NoError(t, err)
		m := &markers{t: t}
		require.NotNil(t, models.LookupModel(name), name)
		m.compare(name+" (v2)", reflect.TypeOf(obj), want, strategicpatch.NewPatchMetaFromOpenAPI(models.LookupModel(name)))
		m.compare(name+" (v3)", reflect.TypeOf(obj), want, strategicpatch.PatchMetaFromOpenAPIV3{
			SchemaList: v3.Components.Schemas, Schema: v3.Components.Schemas[name]})
		assert.Greater(t, m.seen, 5, name)
	}
}

type markers struct {
	t    *testing.T
	seen int
}

func (m *markers) compare(path string, typ reflect.Type, a, b strategicpatch.LookupPatchMeta) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := indirect(f.Type)
		if name == "" {
			if of.Kind() == reflect.Struct && of.Name() != "TypeMeta" {
				m.compare(path, of, a, b)
			}
			continue
		}
		at := path + "." + name
		switch {
		case of.Kind() == reflect.Struct && fielded(of):
			na, pa, err := a.LookupPatchMetadataForStruct(name)
			require.NoError(m.t, err, at)
			nb, pb, err := b.LookupPatchMetadataForStruct(name)
			if m.newer(at, err) {
				continue
			}
			m.equal(at, pa, pb)
			m.compare(at, of, na, nb)
		case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8:
			na, pa, err := a.LookupPatchMetadataForSlice(name)
			require.NoError(m.t, err, at)
			nb, pb, err := b.LookupPatchMetadataForSlice(name)
			if m.newer(at, err) {
				continue
			}
			m.equal(at, pa, pb)
			if e := indirect(of.Elem()); e.Kind() == reflect.Struct && fielded(e) {
				m.compare(at+"[]", e, na, nb)
			}
		}
	}
}

// newer reports whether a field was added after the served version of the API.
func (m *markers) newer(at string, err error) bool {
	if err == nil {
		return false
	}
	name := at[strings.LastIndexByte(at, '.')+1:]
	return assert.Contains(m.t, []string{"bindMountOptions", "evictionResponders", "mapping", "overhead", "volumeHealth"}, name, "%s: %v", at, err)
}

func (m *markers) equal(at string, a, b strategicpatch.PatchMeta) {
	m.seen++
	assert.Equal(m.t, strings.Join(a.GetPatchStrategies(), ","), strings.Join(b.GetPatchStrategies(), ","), at)
	assert.Equal(m.t, a.GetPatchMergeKey(), b.GetPatchMergeKey(), at)
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// fielded reports whether a struct is written with its fields, unlike times
// and quantities.
func fielded(t reflect.Type) bool {
	switch t.Name() {
	case "Time", "MicroTime", "Quantity", "IntOrString", "FieldsV1", "RawExtension", "Duration":
		return false
	}
	return true
}

// TestFieldSets checks that a client that tracks fields by the documents identifies list items by their
// keys.
func TestFieldSets(t *testing.T) {
	_, c := newServer(t)
	root := openapi3.NewRoot(c.OpenAPIV3())
	fields := func(gv schema.GroupVersion, obj map[string]any) string {
		doc, err := root.GVSpec(gv)
		require.NoError(t, err)
		converter, err := managedfields.NewTypeConverter(doc.Components.Schemas, false)
		require.NoError(t, err)
		typed, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: obj})
		require.NoError(t, err)
		set, err := typed.ToFieldSet()
		require.NoError(t, err)
		text, err := set.ToJSON()
		require.NoError(t, err)
		return string(text)
	}
	pod := fields(schema.GroupVersion{Version: "v1"}, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "finalizers": []any{"a.b/c"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "ports": []any{
			map[string]any{"containerPort": int64(80), "protocol": "TCP"}}}}},
	})
	for _, want := range []string{`"k:{\"name\":\"c\"}"`, `"k:{\"containerPort\":80,\"protocol\":\"TCP\"}"`, `"v:\"a.b/c\""`} {
		assert.Contains(t, pod, want)
	}
	widget := fields(schema.GroupVersion{Group: "example.com", Version: "v1"}, map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"},
		"spec": map[string]any{"tags": []any{"x"}, "parts": []any{map[string]any{"name": "n", "weight": 1.5}},
			"more": map[string]any{"k": "a"}, "free": map[string]any{"z": map[string]any{"y": int64(1)}}, "port": "http"},
	})
	for _, want := range []string{`"v:\"x\""`, `"k:{\"name\":\"n\"}"`, `"f:more":{}`, `"f:z":{".":{},"f:y":{}}`} {
		assert.Contains(t, widget, want)
	}
}
