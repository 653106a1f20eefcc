package schema

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// readField returns the result of OpenAPI for a schema with one field, a.
func readField(t testing.TB, field string) (*Schema, []cause) {
	return readSchema(t, `{"type":"object","properties":{"a":`+field+`}}`)
}

func readSchema(t testing.TB, doc string) (*Schema, []cause) {
	s, causes := OpenAPI(tree(t, doc), names.Orch, check.At("s"))
	var short []cause
	for _, c := range causes {
		short = append(short, cause{c.Reason, c.Field})
	}
	return s, short
}

const inA = "s.properties[a]"

func TestStructuralRules(t *testing.T) {
	for _, c := range []struct {
		field string // the schema of the field a
		want  []cause
	}{
		{`{"type":"string"}`, nil},
		{`{}`, []cause{{meta.CauseRequired, inA + ".type"}}},
		{`{"x-orch-preserve-unknown-fields":true}`, nil},
		{`{"x-orch-preserve-unknown-fields":false,"type":"object"}`, []cause{{meta.CauseInvalid, inA + ".x-orch-preserve-unknown-fields"}}},
		{`{"type":"text"}`, []cause{{meta.CauseNotSupported, inA + ".type"}}},
		{`{"type":7}`, []cause{{meta.CauseTypeInvalid, inA + ".type"}}},
		{`{"type":"string","pattern":"("}`, []cause{{meta.CauseInvalid, inA + ".pattern"}}},
		{`{"type":"string","maxLength":"3"}`, []cause{{meta.CauseTypeInvalid, inA + ".maxLength"}}},
		{`{"type":"number","minimum":"3"}`, []cause{{meta.CauseTypeInvalid, inA + ".minimum"}}},

		{`{"type":"string","$ref":"#/x"}`, []cause{{meta.CauseForbidden, inA + ".$ref"}}},
		{`{"type":"string","id":"x"}`, []cause{{meta.CauseForbidden, inA + ".id"}}},
		{`{"type":"object","patternProperties":{"a":{}}}`, []cause{{meta.CauseForbidden, inA + ".patternProperties"}}},
		{`{"type":"object","definitions":{"a":{}}}`, []cause{{meta.CauseForbidden, inA + ".definitions"}}},
		{`{"type":"object","dependencies":{"a":["b"]}}`, []cause{{meta.CauseForbidden, inA + ".dependencies"}}},
		{`{"type":"array","items":{"type":"string"},"additionalItems":true}`, []cause{{meta.CauseForbidden, inA + ".additionalItems"}}},
		{`{"type":"array","items":{"type":"string"},"uniqueItems":true}`, []cause{{meta.CauseForbidden, inA + ".uniqueItems"}}},

		{`{"type":"array"}`, []cause{{meta.CauseRequired, inA + ".items"}}},
		{`{"type":"array","items":{}}`, []cause{{meta.CauseRequired, inA + ".items.type"}}},
		{`{"type":"array","items":[{"type":"string"}]}`, []cause{{meta.CauseForbidden, inA + ".items"}}},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, nil},
		{`{"type":"object","additionalProperties":true}`, nil},
		{`{"type":"object","additionalProperties":false}`, nil},
		{`{"type":"array","items":{"type":"string"},"additionalItems":false}`, []cause{{meta.CauseForbidden, inA + ".additionalItems"}}},
		{`{"type":"object","anyOf":[{"properties":{"y":{"minLength":1}}}]}`, nil},
		{`{"type":"object","additionalProperties":{}}`, []cause{{meta.CauseRequired, inA + ".additionalProperties.type"}}},
		{`{"type":"object","additionalProperties":{"type":"string"},"properties":{"x":{"type":"string"}}}`, []cause{{meta.CauseForbidden, inA + ".additionalProperties"}}},

		{`{"x-orch-int-or-string":true}`, nil},
		{`{"x-orch-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`, nil},
		{`{"x-orch-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"pattern":"a"}]}`, nil},
		{`{"x-orch-int-or-string":true,"anyOf":[{"type":"string"},{"type":"integer"}]}`, []cause{{meta.CauseForbidden, inA + ".anyOf[0].type"}, {meta.CauseForbidden, inA + ".anyOf[1].type"}}},
		{`{"x-orch-int-or-string":true,"type":"string"}`, nil},
		{`{"x-orch-int-or-string":true,"x-orch-preserve-unknown-fields":true}`, []cause{{meta.CauseInvalid, inA + ".x-orch-preserve-unknown-fields"}}},

		{`{"type":"string","allOf":[{"minLength":1}],"not":{"pattern":"x"}}`, nil},
		{`{"type":"string","oneOf":[{"type":"string"}]}`, []cause{{meta.CauseForbidden, inA + ".oneOf[0].type"}}},
		{`{"type":"string","not":{"default":"x"}}`, []cause{{meta.CauseForbidden, inA + ".not.default"}}},
		{`{"type":"string","allOf":[{"description":"x","title":"y","nullable":true}]}`, []cause{
			{meta.CauseForbidden, inA + ".allOf[0].description"}, {meta.CauseForbidden, inA + ".allOf[0].nullable"}, {meta.CauseForbidden, inA + ".allOf[0].title"}}},
		{`{"type":"object","allOf":[{"x-orch-preserve-unknown-fields":true}]}`, []cause{{meta.CauseForbidden, inA + ".allOf[0].x-orch-preserve-unknown-fields"}}},
		{`{"type":"object","properties":{"x":{"type":"string"}},"anyOf":[{"required":["x"]},{"properties":{"x":{"minLength":1}}}]}`, nil},
		{`{"type":"object","properties":{"x":{"type":"string"}},"anyOf":[{"properties":{"y":{"minLength":1}}}]}`, nil},
		{`{"type":"object","properties":{"x":{"type":"string"}},"not":{"items":{"minLength":1}}}`, nil},
		{`{"type":"string","allOf":{}}`, []cause{{meta.CauseTypeInvalid, inA + ".allOf"}}},

		{`{"type":"object","x-orch-embedded-resource":true,"x-orch-preserve-unknown-fields":true}`, nil},
		{`{"type":"object","x-orch-embedded-resource":true}`, []cause{{meta.CauseRequired, inA + ".properties"}}},
		{`{"x-orch-embedded-resource":true,"x-orch-preserve-unknown-fields":true}`, []cause{{meta.CauseRequired, inA + ".type"}}},
		{`{"type":"string","x-orch-embedded-resource":true,"x-orch-preserve-unknown-fields":true}`, []cause{{meta.CauseInvalid, inA + ".type"}}},
		{`{"type":"object","x-orch-embedded-resource":true,"properties":{"kind":{"type":"integer"}}}`, []cause{{meta.CauseInvalid, inA + ".properties[kind].type"}}},

		{`{"type":"string","x-orch-list-type":"set"}`, []cause{{meta.CauseInvalid, inA + ".type"}}},
		{`{"type":"array","items":{"type":"string"},"x-orch-list-type":"bag"}`, []cause{{meta.CauseNotSupported, inA + ".x-orch-list-type"}}},
		{`{"type":"array","items":{"type":"string","nullable":true},"x-orch-list-type":"set"}`, []cause{{meta.CauseForbidden, inA + ".items.nullable"}}},
		{`{"type":"array","items":{"type":"object"},"x-orch-list-type":"set"}`, []cause{{meta.CauseInvalid, inA + ".items.x-orch-map-type"}}},
		{`{"type":"array","items":{"type":"object","x-orch-map-type":"atomic"},"x-orch-list-type":"set"}`, nil},
		{`{"type":"array","items":{"type":"string"},"x-orch-list-map-keys":["k"]}`, []cause{{meta.CauseRequired, inA + ".x-orch-list-type"}}},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},"x-orch-list-type":"map","x-orch-list-map-keys":["k"]}`, nil},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string","default":"x"}}},"x-orch-list-type":"map","x-orch-list-map-keys":["k"]}`, nil},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}},"x-orch-list-type":"map","x-orch-list-map-keys":["k"]}`, []cause{{meta.CauseRequired, inA + ".items.properties[k].default"}}},
		{`{"type":"array","items":{"type":"object"},"x-orch-list-type":"map","x-orch-list-map-keys":["k"]}`, []cause{{meta.CauseInvalid, inA + ".x-orch-list-map-keys"}}},
		{`{"type":"array","items":{"type":"object"},"x-orch-list-type":"map"}`, []cause{{meta.CauseRequired, inA + ".x-orch-list-map-keys"}}},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"object"}},"required":["k"]},"x-orch-list-type":"map","x-orch-list-map-keys":["k","k"]}`, []cause{
			{meta.CauseInvalid, inA + ".items.properties[k].type"}, {meta.CauseInvalid, inA + ".x-orch-list-map-keys"}}},
		{`{"type":"string","x-orch-map-type":"atomic"}`, []cause{{meta.CauseInvalid, inA + ".type"}}},
		{`{"type":"object","x-orch-map-type":"loose"}`, []cause{{meta.CauseNotSupported, inA + ".x-orch-map-type"}}},

		{`{"type":"string","default":"x"}`, nil},
		{`{"type":"string","default":7}`, []cause{{meta.CauseTypeInvalid, inA + ".default"}}},
		{`{"type":"string","default":"x","minLength":3}`, []cause{{meta.CauseInvalid, inA + ".default"}}},
		{`{"type":"object","default":{"y":1},"properties":{"x":{"type":"string"}}}`, []cause{{meta.CauseInvalid, inA + ".default"}}},
		{`{"type":"object","default":{},"required":["x"],"properties":{"x":{"type":"string"}}}`, []cause{{meta.CauseRequired, inA + ".default.x"}}},
		{`{"type":"object","default":{},"required":["x"],"properties":{"x":{"type":"string","default":"d"}}}`, []cause{{meta.CauseRequired, inA + ".default.x"}}},
	} {
		s, got := readField(t, c.field)
		assert.Equal(t, c.want, got, c.field)
		assert.Equal(t, len(c.want) == 0, s != nil, c.field)
	}
}

func TestStructuralRulesOfTheRoot(t *testing.T) {
	for _, c := range []struct {
		doc  string
		want []cause
	}{
		{`{"type":"object"}`, nil},
		{`{}`, []cause{{meta.CauseRequired, "s.type"}}},
		{`{"type":"array","items":{"type":"string"}}`, []cause{{meta.CauseInvalid, "s.type"}}},
		{`{"type":"object","nullable":true}`, []cause{{meta.CauseForbidden, "s.nullable"}}},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, []cause{{meta.CauseForbidden, "s.additionalProperties"}}},
		{`{"type":"object","default":{}}`, []cause{{meta.CauseRequired, "s.default.apiVersion"}, {meta.CauseRequired, "s.default.kind"}}},
		{`{"type":"object","properties":{"metadata":{"type":"object"}}}`, nil},
		{`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","pattern":"^a"}}}}}`, nil},
		{`{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}`, []cause{{meta.CauseForbidden, "s.properties[metadata]"}}},
		{`{"type":"object","properties":{"metadata":{"type":"string"}}}`, []cause{{meta.CauseInvalid, "s.properties[metadata].type"}}},
		{`{"type":"object","properties":{"apiVersion":{"type":"integer"}}}`, []cause{{meta.CauseInvalid, "s.properties[apiVersion].type"}}},
		{`{"type":"object","anyOf":[{"properties":{"metadata":{}}}],"properties":{"metadata":{"type":"object"}}}`, []cause{{meta.CauseForbidden, "s.anyOf[0].properties[metadata]"}}},
	} {
		_, got := readSchema(t, c.doc)
		assert.Equal(t, c.want, got, c.doc)
	}
}

func TestOpenAPIReadsValueRules(t *testing.T) {
	s, causes := OpenAPI(tree(t, `{"type":"object","properties":{"spec":{"type":"object","required":["s"],
		"properties":{"s":{"type":"string","pattern":"^a","maxLength":3,"enum":["a","ab","abc"]},"n":{"type":"number","minimum":1,"exclusiveMinimum":true,"multipleOf":0.5},
		"i":{"x-kubernetes-int-or-string":true},"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		"u":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}}}}}`),
		names.Kubernetes, check.At("s"))
	require.Empty(t, causes)
	for in, want := range map[string][]cause{
		`{"spec":{"s":"ab","n":1.5,"i":3}}`:                           nil,
		`{"spec":{"s":"b"}}`:                                          {{meta.CauseInvalid, "spec.s"}, {meta.CauseNotSupported, "spec.s"}},
		`{"spec":{}}`:                                                 {{meta.CauseRequired, "spec.s"}},
		`{"spec":{"s":"a","n":1,"i":true}}`:                           {{meta.CauseTypeInvalid, "spec.i"}, {meta.CauseInvalid, "spec.n"}, {meta.CauseInvalid, "spec.n"}},
		`{"spec":{"s":"a","e":{"kind":"K"}}}`:                         {{meta.CauseRequired, "spec.e.apiVersion"}},
		`{"spec":{"s":"a","u":{"a":"1"}}}`:                            nil,
		`{"spec":{"s":"a","u":{"a":"1","b":"2"}}}`:                    {{meta.CauseInvalid, wording.WholeField}},
		`{"spec":{"s":"a","e":{"kind":"K","apiVersion":"v1","x":1}}}`: nil,
	} {
		m := tree(t, in)
		_, faults := s.Normalize(m)
		require.Empty(t, faults, in)
		assert.Equal(t, want, causesOf(s, m, nil), in)
	}
}

func TestOpenAPIIsBounded(t *testing.T) {
	deep := `{"type":"string"}`
	for range maxSchemaDepth + 5 {
		deep = `{"type":"object","properties":{"a":` + deep + `}}`
	}
	_, causes := OpenAPI(tree(t, deep), names.Orch, nil)
	require.Len(t, causes, 1)
	assert.Equal(t, meta.CauseForbidden, causes[0].Reason)

	wide := map[string]any{}
	for i := range maxSchemaNodes + 1 {
		wide[string(rune('a'+i%26))+string(rune('0'+i/26%10))+string(rune(0x4e00+i/260))] = map[string]any{"type": "string"}
	}
	_, causes = OpenAPI(map[string]any{"type": "object", "properties": wide}, names.Orch, nil)
	require.NotEmpty(t, causes)
	assert.LessOrEqual(t, len(causes), 2)
}

func FuzzOpenAPI(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"},"x-orch-list-type":"map","x-orch-list-map-keys":["k"]}}}`, `{"a":[{}]}`)
	f.Add(`{"type":"object","properties":{"a":{"default":{"b":[1]},"x-orch-preserve-unknown-fields":true}},"anyOf":[{"required":["a"]}],"not":{"properties":{"a":{"items":{}}}}}`, `{"a":null}`)
	f.Fuzz(func(t *testing.T, doc, object string) {
		var d, o map[string]any
		if json.Unmarshal([]byte(doc), &d) != nil || json.Unmarshal([]byte(object), &o) != nil || d == nil || o == nil {
			return
		}
		s, causes := OpenAPI(d, names.Orch, nil)
		if (s == nil) != (len(causes) > 0) {
			t.Fatal("a schema has faults, or is there")
		}
		if s == nil {
			return
		}
		s.Normalize(o)
		_ = s.FillDefaults(o)
		s.Validate(o, nil)
	})
}
