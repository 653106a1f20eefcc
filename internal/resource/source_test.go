package resource_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

const boxes = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boxes.example.com"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"boxes","kind":"Box"},"versions":[
	{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"old":{"type":"string"}}}}},
	{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"new":{"type":"TYPE"}}}}}]}}`

// TestDefineReadsSchemasWhenTheyAreNeeded: once, and each version has its own.
func TestDefineReadsSchemasWhenTheyAreNeeded(t *testing.T) {
	whole := definitionOf(t, "string")
	outline := definitionOf(t, "string")
	for _, v := range outline.List("spec", "versions") {
		delete(v.(map[string]any), "schema")
	}
	reads := 0
	typ, err := resource.Define(registry.FromDefinition(outline, nil), names.Kubernetes, compat.Rules{}, func() *registry.Kind {
		reads++
		return registry.FromDefinition(whole, nil)
	}, func(err error) { t.Error(err) })
	require.NoError(t, err)
	require.Zero(t, reads)
	assert.NotNil(t, typ.Version("v1").Schema().Struct.Field("new"))
	assert.NotNil(t, typ.Version("v1beta1").Schema().Struct.Field("old"))
	assert.Equal(t, 1, reads)
}

// TestNothingIsWrittenUnderABrokenDefinition: what cannot be checked is refused.
func TestNothingIsWrittenUnderABrokenDefinition(t *testing.T) {
	broken := definitionOf(t, "sting")
	var told error
	typ, err := resource.Define(registry.FromDefinition(broken, nil), names.Kubernetes, compat.Rules{},
		func() *registry.Kind { return registry.FromDefinition(broken, nil) }, func(err error) { told = err })
	require.NoError(t, err)
	box := meta.NewObject(map[string]any{"new": "thing"})
	unknown, faults := typ.Storage.Normalize(box)
	assert.Empty(t, unknown, "what is stored stays as it is")
	assert.Empty(t, faults)
	causes, _ := typ.Storage.CheckRules(typ.Storage.NewChange(t.Context(), box, nil, ""), nil)
	require.Len(t, causes, 1)
	assert.Contains(t, causes[0].Message, "the definition of the kind is broken")
	assert.ErrorContains(t, told, "sting")
}

// TestADefinitionThatReadsDifferentlyIsBroken: what is read late may not be what was
// served, such as text that is no JSON in the schemas, which were passed over.
func TestADefinitionThatReadsDifferentlyIsBroken(t *testing.T) {
	for why, edit := range map[string]func(crd *meta.Object){
		"not a CustomResourceDefinition of version v1": func(crd *meta.Object) { crd.Delete("kind") },
		"other versions": func(crd *meta.Object) {
			crd.Set(crd.List("spec", "versions")[:1], "spec", "versions")
		},
	} {
		other := definitionOf(t, "string")
		edit(other)
		var told error
		typ, err := resource.Define(registry.FromDefinition(definitionOf(t, "string"), nil), names.Kubernetes, compat.Rules{},
			func() *registry.Kind { return registry.FromDefinition(other, nil) }, func(err error) { told = err })
		require.NoError(t, err)
		for _, v := range typ.Versions {
			assert.NotEmpty(t, v.Schema().Rules, "%s: %s can be written", why, v.Name)
		}
		assert.ErrorContains(t, told, why)
	}
}

func definitionOf(t *testing.T, typ string) *meta.Object {
	t.Helper()
	docs, err := registry.CRDFiles(fstest.MapFS{"boxes.json": {Data: []byte(strings.ReplaceAll(boxes, "TYPE", typ))}})
	require.NoError(t, err)
	require.Len(t, docs, 1)
	return docs[0]
}
