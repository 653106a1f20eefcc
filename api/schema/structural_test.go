package schema

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

func lines(causes []meta.StatusCause) (out []string) {
	for _, c := range causes {
		out = append(out, c.Field+": "+c.Message)
	}
	return out
}

// TestStructuralCauses compares the causes of invalid definitions with the expected messages.
func TestStructuralCauses(t *testing.T) {
	const in = `{"type":"object","properties":{"spec":{"type":"string"}},`
	for doc, want := range map[string][]string{
		in + `"anyOf":[{"properties":{"x":{"maxLength":1}}}]}`: {`s.properties[x]: Required value: because it is defined in s.anyOf[0].properties[x]`},
		in + `"not":{"properties":{"spec":{"items":{}}}}}`:     {`s.properties[spec].items: Required value: because it is defined in s.not.properties[spec].items`},
		in + `"default":{}}`: {`s.default.apiVersion: Required value`, `s.default.kind: Required value`},
		in + `"default":{"apiVersion":"v1","kind":"K","spec":1}}`: {`s.default.spec: Invalid value: "integer": spec in body must be of type string: "integer"`},
		in + `"default":{"apiVersion":"v1","kind":"K"}}`:          nil,
		in + `"$schema":"x"}`:                                     {`s: Invalid value: "": OpenAPIV3Schema 'schema' is not supported`},
		in + `"x-kubernetes-map-type":""}`:                        {`s.x-kubernetes-map-type: Unsupported value: "": supported values: "atomic", "granular"`},
		`{"type":"object","properties":{"kind":{"type":"string","default":"K"}}}`: {
			`s.properties[kind].default: Forbidden: must not be set in top-level kind`},
		`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"n"}}}}}`: {
			`s.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata`},
		`{"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{"type":"string","default":"K"},
			"metadata":{"type":"object","properties":{"name":{"type":"string","default":"n"},"labels":{"type":"object","additionalProperties":{"type":"string","default":"l"}}}}}}}}`: {
			`s.properties[a].properties[metadata].properties[labels].additionalProperties.default: Forbidden: must not be set inside additionalProperties applying to object metadata`},
		`{"type":"object","properties":{"a":{"type":"string","anyOf":[{"type":"integer"},{"type":"string"}]}}}`:                              nil,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string","default":1}}}}`:                        nil,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set","default":["a","a"]}}}`: nil,
		`{"type":"object","properties":{"a":{"type":"words"},"b":{"type":"array"},"c":{"type":"object","default":{"x":1}}}}`: {
			`s.properties[b].items: Required value: must be specified`,
			`s.properties[a].type: Unsupported value: "words": supported values: "array", "boolean", "integer", "number", "object", "string"`},
		`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}}}`: {
			`s.properties[a].items: Required value: must be specified`, `s.properties[a].items: Required value: must have a schema if x-kubernetes-list-type is map`},
	} {
		_, causes := OpenAPI(tree(t, doc), names.Kubernetes, check.At("s"))
		assert.Equal(t, want, lines(causes), doc)
	}
}

// TestValuesOfDefinitions checks the causes of objects in cases that the schema does not make
// obvious.
func TestValuesOfDefinitions(t *testing.T) {
	s, causes := OpenAPI(tree(t, `{"type":"object","properties":{
		"fraction":{"type":"number","minimum":1.5},"part":{"type":"number","multipleOf":0.1},"never":{"type":"number","multipleOf":0},
		"word":{"type":"string","nullable":true,"enum":["x",null]},"address":{"x-kubernetes-int-or-string":true,"format":"ipv4"},"day":{"type":"integer","format":"date"},
		"objects":{"type":"object","additionalProperties":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}},
		"sets":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}},
		"either":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}},
			"anyOf":[{"properties":{"x":{"enum":["a"]}}},{"properties":{"y":{"minimum":5}}}]}}}`), names.Kubernetes, check.At("s"))
	require.Empty(t, causes)
	for in, want := range map[string][]string{
		`{"fraction":1}`:                          nil,
		`{"fraction":1.2}`:                        {`fraction: Invalid value: 1.2: fraction in body should be greater than or equal to 1.5`},
		`{"part":0.3}`:                            nil,
		`{"part":1}`:                              {`part: Invalid value: 0: factor MultipleOf declared for part must be positive: 0`},
		`{"never":0.5}`:                           {`never: Invalid value: 0: factor MultipleOf declared for never must be positive: 0`},
		`{"word":null}`:                           {`word: Unsupported value: null: supported values: "x", "null"`},
		`{"address":"a"}`:                         {`address: Invalid value: "a": address in body must be of type ipv4: "a"`},
		`{"address":1}`:                           nil,
		`{"day":"monday"}`:                        {`day: Invalid value: "string": day in body must be of type integer: "string"`},
		`{"sets":{"a.b":["x","x"]}}`:              {`sets[a.b][1]: Duplicate value: "x"`},
		`{"sets":{"a.b":[1]}}`:                    {`sets.a.b[0]: Invalid value: "integer": sets.a.b[0] in body must be of type string: "integer"`},
		`{"objects":{"a.b":{"apiVersion":"v1"}}}`: {`objects[a.b].kind: Required value`},
		`{"either":{"x":"b","y":3}}`: {`<nil>: Invalid value: "": "either" must validate at least one schema (anyOf)`,
			`either.y: Invalid value: 3: either.y in body should be greater than or equal to 5`},
	} {
		assert.Equal(t, want, lines(s.Validate(tree(t, in), nil)), in)
	}
}

func TestUnknownFieldsArePruned(t *testing.T) {
	s, causes := OpenAPI(tree(t, `{"type":"object","properties":{
		"any":{"type":"object","additionalProperties":true},"kept":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"known":{"type":"object"}}},
		"whole":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}},
		"named":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object"}}}}}`), names.Kubernetes, check.At("s"))
	require.Empty(t, causes)
	for in, want := range map[string]string{
		`{"any":{"x":{"y":1},"z":[{"w":1},2]}}`:           `{"any":{"x":{},"z":[{},2]}}`,
		`{"kept":{"x":{"y":1},"known":{"x":1}}}`:          `{"kept":{"x":{"y":1},"known":{}}}`,
		`{"whole":{"spec":{"x":1},"metadata":null}}`:      `{"whole":{"spec":{},"metadata":{}}}`,
		`{"whole":{"x":1,"metadata":{"name":"n","x":1}}}`: `{"whole":{"metadata":{"name":"n"}}}`,
		`{"named":{"metadata":null}}`:                     `{"named":{}}`,
	} {
		m := tree(t, in)
		s.Normalize(m)
		assert.Equal(t, tree(t, want), m, in)
	}
	_, faults := s.Normalize(tree(t, `{"whole":{"metadata":{"creationTimestamp":"x"}}}`))
	assert.Equal(t, []string{`whole.metadata: whole.metadata: Invalid value: {"creationTimestamp":"x"}: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`}, lines(faults))
}
