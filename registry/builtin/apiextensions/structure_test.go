package apiextensions_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

func TestWhatIsToldOfADefinition(t *testing.T) {
	v := compiled(t, names.Orch)
	part := func(field, value string) []string {
		return []string{`"name":"v1",`, `"name":"v1","` + field + `":` + value + `,`}
	}
	selectable := func(path string) []string { return part("selectableFields", `[{"jsonPath":"`+path+`"}]`) }
	const path = "is an invalid path: "
	const beside = `only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems ` +
		`MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled`
	for _, c := range []struct {
		change []string
		want   string
	}{
		{selectable(`.spec.s`), ""},
		{selectable(`spec.s`), `Invalid value: "spec.s": ` + path + `expected [ or . but got: spec`},
		{selectable(`.spec.l[0]`), `Invalid value: ".spec.l[0]": ` + path + `array notation is not allowed`},
		{selectable(`.spec.s.`), `Invalid value: ".spec.s.": ` + path + `unexpected end of JSON path`},
		{selectable(`.spec..s`), `Invalid value: ".spec..s": ` + path + `does not refer to a valid field`},
		{selectable(`.metadata.name`), `Invalid value: ".metadata.name": ` + path + `does not refer to a valid field`},
		{selectable(`.spec.l`), `Invalid value: ".spec.l": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.`},
		{part("additionalPrinterColumns", `[{"name":"A","type":"string","jsonPath":"spec"}]`), `Invalid value: "spec": must be a simple json path starting with .`},
		{part("additionalPrinterColumns", `[{"name":"A","type":"string","jsonPath":".spec["}]`), ""},
		{part("subresources", `{"scale":{"specReplicasPath":".spec","statusReplicasPath":".status.r"}}`), `Invalid value: ".spec": should be a json path under .spec`},
		{part("subresources", `{"scale":{"specReplicasPath":".spec[0]","statusReplicasPath":".status.r"}}`), `Invalid value: ".spec[0]": should be a json path under .spec`},
		{part("subresources", `{"scale":{"specReplicasPath":"spec.n","statusReplicasPath":".status.r"}}`), `Invalid value: "spec.n": must be a simple json path starting with .`},
		{part("subresources", `{"status":{},"scale":{"specReplicasPath":".spec.a[0]","statusReplicasPath":".status.a[*].b","labelSelectorPath":".spec.{x}"}}`), ""},
		{part("subresources", `{"status":{},"scale":{"specReplicasPath":".spec.a b","statusReplicasPath":".status.","labelSelectorPath":".status..a"}}`), ""},
		{part("subresources", `{"status":{}}`), ""},
		{append(part("subresources", `{"status":{}}`), `"openAPIV3Schema":{`, `"openAPIV3Schema":{"not":{"required":["x"]},`), `Invalid value: "": ` + beside},
		{[]string{`"openAPIV3Schema":{`, `"openAPIV3Schema":{"not":{"required":["x"]},`}, ""},
		{[]string{`"s":{`, `"s":{"default":"b","x-orch-validations":[{"rule":"self == 'a'"}],`}, `Invalid value: "b": failed rule: self == 'a'`},
		{[]string{`"s":{`, `"s":{"default":"a","x-orch-validations":[{"rule":"self == 'a'"}],`}, ""},
		{[]string{`"spec":{"group"`, `"spec":{"preserveUnknownFields":true,"group"`},
			`Invalid value: true: cannot set to true, set x-orch-preserve-unknown-fields to true in spec.versions[*].schema instead`},
	} {
		causes := validate(t, v, definition(t, v, nil, c.change...), nil)
		if c.want == "" {
			assert.Empty(t, causes, "%q", c.change)
		} else if assert.Len(t, causes, 1, "%q", c.change) {
			assert.Equal(t, c.want, causes[0].Message)
		}
	}
}

func TestUnknownFormatsAreWarnedOfOnce(t *testing.T) {
	v := compiled(t, names.Orch)
	require.NotNil(t, v.Behavior.Warn)
	old := definition(t, v, nil, `"s":{`, `"s":{"format":"odd",`, `"n":{`, `"n":{"format":"date",`, `"items":{`, `"items":{"format":"date-time",`, `"r":{`, `"r":{"format":"int32",`)
	assert.Equal(t, []string{`unrecognized format "date"`, `unrecognized format "odd"`}, v.Behavior.Warn(v.NewChange(t.Context(), old, nil, "")))
	o := definition(t, v, old, `"s":{`, `"s":{"format":"odd",`, `"n":{`, `"n":{"format":"double",`)
	assert.Equal(t, []string{`unrecognized format "double"`}, v.Behavior.Warn(v.NewChange(t.Context(), o, old, "")))
}

// TestSetsOfObjectsCauseWarnings: the warning is returned once, when the definition gains the
// first such set.
func TestSetsOfObjectsCauseWarnings(t *testing.T) {
	v := compiled(t, names.Kubernetes)
	set := func(item string) string {
		return `{"x-kubernetes-list-type":"set","type":"array","items":{"type":"` + item + `","x-kubernetes-map-type":"atomic"}}`
	}
	crd := func(properties string) *meta.Object {
		return meta.NewObject(map[string]any{"spec": map[string]any{"versions": []any{map[string]any{"schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "properties": decoded(t, properties)}}}}}})
	}
	const warning = `x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL validation rules`
	scalars, objects := crd(`{"a":`+set("string")+`}`), crd(`{"a":`+set("object")+`,"b":`+set("object")+`}`)
	more := crd(`{"a":` + set("object") + `,"b":{"type":"array","items":` + strings.ReplaceAll(set("array"), `,"x-kubernetes-map-type":"atomic"`, "") + `}}`)
	warn := func(o, old *meta.Object) []string { return v.Behavior.Warn(v.NewChange(t.Context(), o, old, "")) }
	assert.Empty(t, warn(scalars, nil))
	assert.Equal(t, []string{warning}, warn(objects, nil))
	assert.Equal(t, []string{warning}, warn(objects, scalars))
	assert.Equal(t, []string{strings.Replace(warning, "object", "array", 1)}, warn(more, objects))
}

func decoded(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	return out
}
