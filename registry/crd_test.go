package registry_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

const gadgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: gadgets, kind: Gadget, shortNames: [gd], categories: [all]}
  versions:
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string, default: red}
              size: {type: integer}
          status: {type: object, properties: {replicas: {type: integer}}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.replicas}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns: [{name: Color, type: string, jsonPath: .spec.color}, {name: Nowhere, type: string, jsonPath: .spec.nowhere}]
`

func TestFromCRD(t *testing.T) {
	typ, err := resource.Compile(registry.FromCRD([]byte(gadgetCRD)), names.Kubernetes)
	require.NoError(t, err)
	assert.Equal(t, "gadgets.example.com", typ.GroupResource().String())
	assert.Equal(t, []string{"Gadget", "GadgetList", "gadget"}, []string{typ.Kind, typ.ListKind, typ.Singular})
	assert.True(t, typ.ConformOnRead && !typ.Namespaced && typ.Status && typ.PutWithVersion)
	assert.Equal(t, "v1", typ.Versions[0].Name)
	assert.Equal(t, "v1", typ.Storage.Name)
	assert.Equal(t, "example.com/v1beta1 Gadget is deprecated; use example.com/v1 Gadget", typ.Version("v1beta1").Deprecated)
	assert.NotNil(t, typ.Subresource("scale"))
	assert.NotNil(t, typ.SelectableField("spec.color"))
	assert.Nil(t, typ.Storage.Proto())

	obj := meta.NewObject(map[string]any{"spec": map[string]any{"size": int64(2), "other": true}})
	unknown, faults := typ.Storage.Normalize(obj)
	assert.Empty(t, faults)
	assert.Equal(t, []string{"spec.other"}, unknown)
	if err := typ.Storage.Defaults(typ.Hub.NewChange(t.Context(), obj, nil, "")); err != nil {
		t.Fatal(err)
	}
	assert.Equal(t, "red", obj.String("spec", "color"))

	var heads []string
	for _, c := range typ.Storage.Columns {
		heads = append(heads, c.Name)
	}
	assert.Equal(t, []string{"Name", "Color", "Nowhere"}, heads)
	assert.Equal(t, "Age", typ.Version("v1beta1").Columns[1].Name)
}

func TestFromCRDReportsErrorsOnCompile(t *testing.T) {
	crd := func(spec string) string {
		return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"group":"e.com","names":{"plural":"as","kind":"A"},%s}}`, spec)
	}
	version := func(schema string) string {
		return `"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]`
	}
	for doc, want := range map[string]string{
		"":                                       "null",
		"a: [":                                   "YAML",
		`{"kind":"ConfigMap","apiVersion":"v1"}`: "not a CustomResourceDefinition",
		`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition"}`: "of version v1",
		crd(`"scope":"Everywhere"`):                "neither Namespaced nor Cluster",
		crd(`"scope":"Cluster"`):                   "exactly one version",
		crd(version(`{}`)):                         "spec.versions[0].schema.openAPIV3Schema.type",
		crd(version(`null`)):                       "is missing",
		crd(`"scope":"Cluster","versions":["v1"]`): "is not an object",
		crd(version(`{"type":"object"}`) + `,"conversion":{"strategy":"Webhook"}`): "spec.conversion.webhook is missing",
		crd(version(`{"type":"object"}`) + `,"conversion":{"strategy":"Magic"}`):   "neither None nor Webhook",
	} {
		_, err := resource.Compile(registry.FromCRD([]byte(doc)), names.Kubernetes)
		assert.ErrorContains(t, err, want, doc)
	}
	_, err := resource.Compile(registry.FromCRD([]byte(gadgetCRD)), names.Orch)
	assert.ErrorContains(t, err, "this server supports apiextensions.orch.io/v1")
}

func TestFromCRDDir(t *testing.T) {
	files := fstest.MapFS{
		"a.yaml":        {Data: []byte("# generated\n---\n" + gadgetCRD + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n# nothing\n")},
		"deep/b.json":   {Data: []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"b"}}`)},
		"notes.txt":     {Data: []byte("kind: CustomResourceDefinition")},
		"deep/more.yml": {Data: []byte("kind: Secret\n")},
	}
	kinds, err := registry.FromCRDDir(files)
	require.NoError(t, err)
	require.Len(t, kinds, 2)
	assert.Equal(t, "Gadget", kinds[0].Kind)

	files["bad.yaml"] = &fstest.MapFile{Data: []byte("a: [")}
	kinds, err = registry.FromCRDDir(files)
	assert.ErrorContains(t, err, "bad.yaml")
	assert.Len(t, kinds, 2)
}

// TestFromCRDRequiresGroup checks that a definition without a group is rejected: its kind would be
// served in the core group.
func TestFromCRDRequiresGroup(t *testing.T) {
	_, err := resource.Compile(registry.FromCRD([]byte(strings.Replace(gadgetCRD, "group: ", "grop: ", 1))), names.Kubernetes)
	assert.ErrorContains(t, err, "spec.group is empty")
}

func FuzzFromCRD(f *testing.F) {
	f.Add([]byte(gadgetCRD))
	f.Add([]byte(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","spec":{"versions":[{"selectableFields":[{"jsonPath":".a[0]"}],"subresources":{"scale":{}}}]}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		typ, err := resource.Compile(registry.FromCRD(doc), names.Kubernetes)
		if (typ == nil) == (err == nil) {
			t.Fatal("Compile must return either a type or an error")
		}
	})
}

func ExampleFromCRD() {
	typ, err := resource.Compile(registry.FromCRD([]byte(gadgetCRD)), names.Kubernetes)
	fmt.Println(typ.GroupResource(), typ.Storage.Name, err)
	// Output: gadgets.example.com v1 <nil>
}

// TestColumnsEndBeforeInvalidPath checks that the columns of a definition end before the first
// column whose path cannot be parsed.
func TestColumnsEndBeforeInvalidPath(t *testing.T) {
	column := func(name, path string) string {
		return fmt.Sprintf(`{"name":%q,"type":"string","jsonPath":%q}`, name, path)
	}
	good, deep, bad := column("Good", ".spec.a"), column("Deep", ".spec..a"), column("Bad", ".spec[")
	for list, want := range map[string][]string{
		"":                            {"Name", "Age"},
		good + "," + deep:             {"Name", "Good", "Deep"},
		good + "," + bad + "," + deep: {"Name", "Good"},
		bad + "," + good:              {"Name"},
	} {
		doc := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.b.c"},"spec":{"group":"b.c","scope":"Cluster",
			"names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[` + list + `],
			"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}}}]}}`
		typ, err := resource.Compile(registry.FromCRD([]byte(doc)), names.Kubernetes)
		require.NoError(t, err)
		var got []string
		for _, c := range typ.Storage.Columns {
			got = append(got, c.Name)
		}
		assert.Equal(t, want, got, list)
	}
}
