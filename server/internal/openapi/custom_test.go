package openapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// customKind returns a custom kind of the group example.com whose spec has the given properties.
func customKind(more, properties string) *registry.Kind {
	return registry.FromCRD([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,` + more + `
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{` + properties + `}}}}}}]}}`))
}

// bothVersions returns the definitions of a catalog in version 2 and those of a group version in version 3.
func bothVersions(t *testing.T, s *resource.State, gv meta.GroupVersion) (second, third any) {
	t.Helper()
	return at(parse(t, V2(s.Types(), info(s))), "definitions"), at(parse(t, V3(gv, servedVersions(s.Types())[gv], info(s))), "components", "schemas")
}

var things = meta.GroupVersion{Group: "example.com", Version: "v1"}

// TestConditionsKeepRequiredFields: required fields of a condition are published even if the condition does not
// describe them. Otherwise every value would match each branch.
func TestConditionsKeepRequiredFields(t *testing.T) {
	t.Parallel()
	s := catalog(t, customKind("", `"one":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},
		"oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["a","b"]},"anyOf":[{"properties":{"a":{"minLength":2}}}]},
		"port":{"x-kubernetes-int-or-string":true}`))
	_, third := bothVersions(t, s, things)
	fields := at(third, "com.example.v1.Thing", "properties", "spec", "properties")
	assert.Equal(t, []any{map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b"}}}, at(fields, "one", "oneOf"))
	assert.Equal(t, map[string]any{"required": []any{"a", "b"}}, at(fields, "one", "not"))
	assert.Equal(t, []any{map[string]any{"properties": map[string]any{"a": map[string]any{"minLength": 2.0}}}}, at(fields, "one", "anyOf"))
	assert.Equal(t, "object", at(fields, "one", "type"))
	assert.Equal(t, []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}, at(fields, "port", "anyOf"))
}

// TestEmbeddedObjectsAreDescribed: an embedded object has the fields of every object. Version 2 allows unknown fields
// in it.
func TestEmbeddedObjectsAreDescribed(t *testing.T) {
	t.Parallel()
	s := catalog(t, customKind("", `"open":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		"known":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{"type":"string"},"more":{"type":"string"}},"required":["more","kind"]}`))
	second, third := bothVersions(t, s, things)
	path := []string{"com.example.v1.Thing", "properties", "spec", "properties"}
	for _, field := range []string{"open", "known"} {
		def := at(at(third, path...), field)
		assert.NotEmpty(t, at(def, "properties", "metadata", "allOf"), field)
		assert.NotEmpty(t, at(def, "properties", "apiVersion"), field)
	}
	assert.Equal(t, []any{"apiVersion", "kind"}, at(at(third, path...), "open", "required"))
	assert.Equal(t, []any{"more", "kind", "apiVersion"}, at(at(third, path...), "known", "required"))
	assert.Nil(t, at(at(second, path...), "open", "properties"))
	assert.Nil(t, at(at(second, path...), "open", "required"))
}

// TestNullableFieldsAreNotRequiredInVersion2: a nullable field is not required in version 2, whose clients omit a
// null. Its default is published.
func TestNullableFieldsAreNotRequiredInVersion2(t *testing.T) {
	t.Parallel()
	s := catalog(t, customKind("", `"in":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"string"}}},
		"none":{"type":"object","required":["a"],"properties":{"a":{"type":"string","nullable":true}}},
		"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["protocol"],
		"items":{"type":"object","properties":{"protocol":{"type":"string","default":"TCP"}}}}`))
	second, third := bothVersions(t, s, things)
	path := []string{"com.example.v1.Thing", "properties", "spec", "properties"}
	assert.Equal(t, []any{"b"}, at(at(second, path...), "in", "required"))
	assert.Equal(t, []any{"a", "b"}, at(at(third, path...), "in", "required"))
	assert.NotContains(t, at(at(second, path...), "none"), "required")
	for _, definitions := range []any{second, third} {
		assert.Equal(t, "TCP", at(at(definitions, path...), "ports", "items", "properties", "protocol", "default"))
	}
}

// TestExamplesAndExternalDocsArePublished: examples, external documentation, enum and pattern are published, also for
// nullable values.
func TestExamplesAndExternalDocsArePublished(t *testing.T) {
	t.Parallel()
	s := catalog(t, customKind("", `"color":{"type":"string","nullable":true,"enum":["red"],"pattern":"^r","format":"word",
		"example":{"any":["value"]},"externalDocs":{"url":"https://example.com/colors","description":"All colors"}}`))
	second, third := bothVersions(t, s, things)
	for _, definitions := range []any{second, third} {
		color := at(definitions, "com.example.v1.Thing", "properties", "spec", "properties", "color")
		assert.Equal(t, map[string]any{"any": []any{"value"}}, at(color, "example"))
		assert.Equal(t, map[string]any{"url": "https://example.com/colors", "description": "All colors"}, at(color, "externalDocs"))
		assert.Equal(t, []any{[]any{"red"}, "^r", "word"}, []any{at(color, "enum"), at(color, "pattern"), at(color, "format")})
	}
}

func TestSelectableFieldsArePublished(t *testing.T) {
	t.Parallel()
	s := catalog(t, customKind(`"selectableFields":[{"jsonPath":".spec.color"}],`, `"color":{"type":"string"}`))
	second, third := bothVersions(t, s, things)
	for _, definitions := range []any{second, third} {
		for _, kind := range []string{"Thing", "ThingList"} {
			assert.Equal(t, []any{map[string]any{"fieldPath": "spec.color"}}, at(definitions, "com.example.v1."+kind, "x-kubernetes-selectable-fields"))
		}
	}
}

// TestValueOfSeveralTypesHasNoType: a value that may be an object or something else has no type, because clients
// would accept only objects.
func TestValueOfSeveralTypesHasNoType(t *testing.T) {
	t.Parallel()
	second, third := bothVersions(t, catalog(t, builtin.Kinds()...), meta.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"})
	count := 0
	for _, definitions := range []any{second, third} {
		for name := range definitions.(map[string]any) {
			if !strings.HasSuffix(name, ".JSONSchemaProps") {
				continue
			}
			for _, field := range []string{"additionalItems", "additionalProperties", "items"} {
				def, _ := at(definitions, name, "properties", field).(map[string]any)
				require.Contains(t, def, "description")
				assert.Len(t, def, 1, field)
				count++
			}
		}
	}
	assert.Equal(t, 6, count)
}
