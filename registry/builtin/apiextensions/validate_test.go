package apiextensions_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin/apiextensions"
)

func compiled(t testing.TB, p names.Profile) *resource.Version {
	typ, err := resource.Compile(apiextensions.Kinds()[0], p)
	require.NoError(t, err)
	return typ.Storage
}

// definition returns a prepared definition with a single version. change replaces pairs of texts
// before.
func definition(t testing.TB, v *resource.Version, old *meta.Object, change ...string) *meta.Object {
	text := `{"apiVersion":"apiextensions.orch.io/v1","kind":"CustomResourceDefinition",
	"metadata":{"name":"widgets.example.com","uid":"u","resourceVersion":"1","creationTimestamp":"2026-01-01T00:00:00Z"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
	"properties":{"s":{"type":"string"},"n":{"type":"integer"},"l":{"type":"array","items":{"type":"string"}}}},"status":{"type":"object","properties":{"r":{"type":"integer"}}}}}}}]}}`
	require.Zero(t, len(change)%2)
	for i := 0; i < len(change); i += 2 {
		require.Contains(t, text, change[i])
		text = strings.ReplaceAll(text, change[i], change[i+1])
	}
	tree, _, err := codec.DecodeJSON([]byte(text), codec.Limits{})
	require.NoError(t, err)
	o := meta.NewObject(tree)
	_, faults := v.Normalize(o)
	require.Empty(t, faults)
	w := v.NewChange(context.Background(), o, old, "")
	require.NoError(t, v.Defaults(w))
	require.NoError(t, v.PrepareForWrite(w))
	return o
}

func validate(t *testing.T, v *resource.Version, o, old *meta.Object) []meta.StatusCause {
	t.Helper()
	causes, err := v.ValidateWrite(v.NewChange(t.Context(), o, old, ""))
	require.NoError(t, err)
	return causes
}

func fields(causes []meta.StatusCause) (out []string) {
	for _, c := range causes {
		out = append(out, string(c.Reason)+" "+c.Field)
	}
	return out
}

func TestDefinitionRules(t *testing.T) {
	v := compiled(t, names.Orch)
	second := func(rest string) []string {
		return []string{`"versions":[`, `"versions":[{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-orch-preserve-unknown-fields":true}}` + rest + `},`}
	}
	part := func(field, value string) []string {
		return []string{`"name":"v1",`, `"name":"v1","` + field + `":` + value + `,`}
	}
	long := `"` + strings.Repeat("x", 257) + `"`
	for _, c := range []struct {
		change []string
		want   []string
	}{
		{nil, nil},
		{second(""), nil},
		{[]string{`"name":"widgets.example.com"`, `"name":"others.example.com"`}, []string{"FieldValueInvalid metadata.name"}},
		{[]string{"example.com", "example"}, []string{"FieldValueInvalid spec.group"}},
		{[]string{`"group":"example.com",`, ``}, []string{"FieldValueInvalid metadata.name", "FieldValueRequired spec.group"}},
		{[]string{"example.com", "things.orch.io"}, []string{"FieldValueRequired metadata.annotations[api-approved.orch.io]"}},
		{[]string{"example.com", "things.orch.io", `"uid"`, `"annotations":{"api-approved.orch.io":"https://example.com/1"},"uid"`}, nil},
		{[]string{"example.com", "things.orch.io", `"uid"`, `"annotations":{"api-approved.orch.io":"unapproved, a test"},"uid"`}, nil},
		{[]string{"example.com", "things.orch.io", `"uid"`, `"annotations":{"api-approved.orch.io":"yes"},"uid"`}, []string{"FieldValueInvalid metadata.annotations[api-approved.orch.io]"}},
		{[]string{"example.com", "things.orch.io", `"uid"`, `"annotations":{"api-approved.orch.io":"/path"},"uid"`}, []string{"FieldValueInvalid metadata.annotations[api-approved.orch.io]"}},
		{[]string{`"scope":"Namespaced",`, ``}, []string{"FieldValueRequired spec.scope"}},
		{[]string{`"Namespaced"`, `"Everywhere"`}, []string{"FieldValueNotSupported spec.scope"}},
		{[]string{`"kind":"Widget"`, `"kind":"Widget","shortNames":["W"],"categories":["A B"]`}, []string{"FieldValueInvalid spec.names.shortNames[0]", "FieldValueInvalid spec.names.categories[0]"}},
		{[]string{`"kind":"Widget"`, `"kind":"Widget","listKind":"Widget"`}, []string{"FieldValueInvalid spec.names.listKind"}},
		{[]string{`"kind":"Widget"`, `"kind":"Wid get"`}, []string{"FieldValueInvalid spec.names.singular", "FieldValueInvalid spec.names.kind", "FieldValueInvalid spec.names.listKind"}},
		{[]string{`"storage":true`, `"storage":false`}, []string{"FieldValueInvalid spec.versions", "FieldValueInvalid status.storedVersions"}},
		{[]string{`"name":"v1"`, `"name":"V1"`}, []string{"FieldValueInvalid spec.versions[0].name", "FieldValueInvalid spec.version"}},
		{[]string{`"spec":{"group"`, `"spec":{"preserveUnknownFields":true,"group"`}, []string{"FieldValueInvalid spec.preserveUnknownFields"}},
		{[]string{`"spec":{"group"`, `"spec":{"conversion":{"strategy":"Magic"},"group"`}, []string{"FieldValueNotSupported spec.conversion.strategy"}},
		{[]string{`"type":"integer"`, `"type":"text"`}, []string{
			"FieldValueNotSupported spec.validation.openAPIV3Schema.properties[spec].properties[n].type",
			"FieldValueNotSupported spec.validation.openAPIV3Schema.properties[status].properties[r].type"}},
		{append(second(""), `"type":"string"},"n"`, `"type":"text"},"n"`), []string{"FieldValueNotSupported spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[s].type"}},

		{part("deprecationWarning", `"old"`), []string{"FieldValueInvalid spec.versions[0].deprecationWarning"}},
		{part("deprecated", `true,"deprecationWarning":"old"`), nil},
		{part("deprecated", `true,"deprecationWarning":`+long), []string{"FieldValueInvalid spec.versions[0].deprecationWarning"}},
		{part("subresources", `{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.r"}}`), nil},
		{part("subresources", `{"scale":{"specReplicasPath":".status.r","statusReplicasPath":".spec[0]","labelSelectorPath":".metadata.x"}}`), []string{
			"FieldValueInvalid spec.subresources.scale.specReplicasPath", "FieldValueInvalid spec.subresources.scale.statusReplicasPath", "FieldValueInvalid spec.subresources.scale.labelSelectorPath"}},
		{part("subresources", `{"scale":{}}`), []string{"FieldValueRequired spec.subresources.scale.specReplicasPath", "FieldValueRequired spec.subresources.scale.statusReplicasPath"}},
		{part("additionalPrinterColumns", `[{"name":"A","type":"integer","format":"int32","jsonPath":".spec.n"}]`), nil},
		{part("additionalPrinterColumns", `[{},{"name":"A","type":"text","format":"odd","jsonPath":"spec"}]`), []string{
			"FieldValueRequired spec.additionalPrinterColumns[0].name", "FieldValueRequired spec.additionalPrinterColumns[0].type", "FieldValueRequired spec.additionalPrinterColumns[0].JSONPath",
			"FieldValueInvalid spec.additionalPrinterColumns[1].type", "FieldValueInvalid spec.additionalPrinterColumns[1].format", "FieldValueInvalid spec.additionalPrinterColumns[1].JSONPath"}},
		{part("selectableFields", `[{"jsonPath":".spec.s"},{"jsonPath":".spec.n"}]`), nil},
		{part("selectableFields", `[{"jsonPath":".spec.s"},{"jsonPath":".spec.s"},{"jsonPath":".spec.l"},{"jsonPath":".spec.x"},{"jsonPath":".metadata.name"},{"jsonPath":".spec.l[0]"},{}]`), []string{
			"FieldValueDuplicate spec.selectableFields[1].jsonPath", "FieldValueInvalid spec.selectableFields[2].jsonPath", "FieldValueInvalid spec.selectableFields[3].jsonPath",
			"FieldValueInvalid spec.selectableFields[4].jsonPath", "FieldValueInvalid spec.selectableFields[5].jsonPath", "FieldValueRequired spec.selectableFields[6].jsonPath"}},
		{second(`,"selectableFields":[{"jsonPath":".spec.x"}]`), []string{"FieldValueInvalid spec.versions[0].selectableFields[0].jsonPath"}},
	} {
		o := definition(t, v, nil, c.change...)
		assert.Equal(t, c.want, fields(validate(t, v, o, nil)), "%q", c.change)
	}
}

func TestImmutableFields(t *testing.T) {
	v := compiled(t, names.Orch)
	for _, established := range []bool{true, false} {
		old := definition(t, v, nil)
		if established {
			old.Set([]any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
		}
		for _, c := range []struct{ from, to, field string }{
			{`"scope":"Namespaced"`, `"scope":"Cluster"`, "spec.scope"},
			{`"group":"example.com"`, `"group":"example.org"`, "spec.group"},
			{`"plural":"widgets"`, `"plural":"gadgets"`, "spec.names.plural"},
			{`"kind":"Widget"`, `"kind":"Gadget"`, "spec.names.kind"},
		} {
			o := definition(t, v, old, c.from, c.to)
			var want []string
			if established {
				want = []string{"FieldValueInvalid " + c.field}
			}
			assert.Equal(t, want, fields(validate(t, v, o, old)), c.to)
		}
	}
	old := definition(t, v, nil)
	o := definition(t, v, old, `"name":"v1"`, `"name":"v2"`)
	assert.Equal(t, []string{"v1", "v2"}, o.Strings("status", "storedVersions"))
	assert.Equal(t, []string{"FieldValueInvalid status.storedVersions[0]"}, fields(validate(t, v, o, old)),
		"a version in which objects may be stored stays")
}

// TestAcceptedNames checks that a write of the status cannot set names that the spec could not have.
func TestAcceptedNames(t *testing.T) {
	v := compiled(t, names.Orch)
	old := definition(t, v, nil)
	const form = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
	for _, c := range []struct {
		accepted map[string]any
		want     []string
	}{
		{map[string]any{}, nil},
		{map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": []any{"w"}, "categories": []any{"all"}}, nil},
		{map[string]any{"plural": "", "kind": ""}, nil},
		{map[string]any{"plural": "A B"}, []string{`plural: Invalid value: "A B": ` + form}},
		{map[string]any{"singular": "Widget"}, []string{`singular: Invalid value: "Widget": ` + form}},
		{map[string]any{"kind": "a b"}, []string{`kind: Invalid value: "a b": may have mixed case, but should otherwise match: ` + form}},
		{map[string]any{"kind": strings.Repeat("K", 64)}, []string{`kind: Invalid value: "` + strings.Repeat("K", 64) + `": may have mixed case, but should otherwise match: must be no more than 63 characters`}},
		{map[string]any{"kind": "Widget", "listKind": "Widget"}, []string{`listKind: Invalid value: "Widget": kind and listKind may not be the same`}},
		{map[string]any{"shortNames": []any{"w", ""}, "categories": []any{"All"}}, []string{`shortNames[1]: Invalid value: "": ` + form, `categories[0]: Invalid value: "All": ` + form}},
	} {
		o := definition(t, v, old)
		o.Set(c.accepted, "status", "acceptedNames")
		var got []string
		for _, cause := range validate(t, v, o, old) {
			got = append(got, strings.TrimPrefix(cause.Field, "status.acceptedNames.")+": "+cause.Message)
		}
		assert.Equal(t, c.want, got)
	}
}

func TestSchemasDropUnknownKeywords(t *testing.T) {
	v := compiled(t, names.Kubernetes)
	o := meta.NewObject(map[string]any{"spec": map[string]any{"versions": []any{map[string]any{"schema": map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "nonsense": true, "x-orch-list-type": "set",
		"properties": map[string]any{"a": map[string]any{
			"items": map[string]any{"odd": int64(1), "x-kubernetes-int-or-string": true}, "additionalProperties": true, "default": map[string]any{"any": "thing"}}},
	}}}}}})
	unknown, faults := v.Normalize(o)
	assert.Empty(t, faults)
	at := "spec.versions[0].schema.openAPIV3Schema."
	assert.Equal(t, []string{at + "nonsense", at + "properties.a.items.odd", at + "x-orch-list-type"}, unknown)

	o = meta.NewObject(map[string]any{"spec": map[string]any{"versions": []any{map[string]any{"schema": map[string]any{"openAPIV3Schema": map[string]any{
		"items": "x", "additionalProperties": int64(3)}}}}}})
	_, faults = v.Normalize(o)
	assert.Len(t, faults, 2)
}

func TestExpressions(t *testing.T) {
	v := compiled(t, names.Orch)
	for rule, want := range map[string]string{`"true"`: "", `"self.size() > 1"`: "", `"self"`: "rule"} {
		causes, err := v.ValidateWrite(v.NewChange(t.Context(), definition(t, v, nil, `"l":{`, `"l":{"x-orch-validations":[{"rule":`+rule+`}],`), nil, ""))
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, causes, rule)
		} else if assert.Len(t, causes, 1, rule) {
			assert.True(t, strings.HasSuffix(causes[0].Field, ".properties[l].x-orch-validations[0]."+want), causes[0].Field)
		}
	}
}

// TestRulesOfAllVersionsAreBounded checks that the limit of rules holds for the sum over all versions.
func TestRulesOfAllVersionsAreBounded(t *testing.T) {
	v := compiled(t, names.Orch)
	version := func(name string, rules int) string {
		list := strings.TrimSuffix(strings.Repeat(`{"rule":"true"},`, rules), ",")
		return `{"name":"` + name + `","served":true,"storage":` + strconv.FormatBool(name == "v1") + `,"schema":{"openAPIV3Schema":{"type":"object","x-orch-validations":[` + list + `]}}}`
	}
	o := definition(t, v, nil)
	var versions []any
	require.NoError(t, json.Unmarshal([]byte("["+version("v1", 1000)+","+version("v2", 999)+","+version("v3", 1)+","+version("v4", 2)+"]"), &versions))
	o.Map("spec")["versions"] = versions
	causes := validate(t, v, o, nil)
	require.Equal(t, []string{"FieldValueForbidden spec.versions[3].schema.openAPIV3Schema"}, fields(causes))
	assert.Contains(t, causes[0].Message, "at most 2000 rules together")
}

// TestConversionWebhook checks the rules for conversion webhooks.
func TestConversionWebhook(t *testing.T) {
	v := compiled(t, names.Orch)
	const none, hook, versions = `{"strategy":"None"`, `{"strategy":"Webhook"`, `,"conversionReviewVersions":["v2","v1"]`
	config := func(text string) string { return `,"clientConfig":{` + text + `}` }
	service := func(more string) string { return config(`"service":{"name":"s","namespace":"n"` + more + `}`) }
	const at, reviews = "spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions"
	for _, c := range []struct {
		strategy, webhook string
		want              []string
	}{
		{hook, service("") + versions, nil},
		{hook, service(`,"port":8443,"path":"/convert"`) + versions, nil},
		{hook, config(`"url":"https://example.com/convert"`) + versions, nil},
		{hook, versions, []string{at + ": Required value: required when strategy is set to Webhook"}},
		{hook, service(""), []string{reviews + ": Required value"}},
		{hook, config(``) + versions, []string{at + ": Required value: exactly one of url or service is required"}},
		{hook, config(`"url":"https://example.com","service":{"name":"s","namespace":"n"}`) + versions, []string{at + ": Required value: exactly one of url or service is required"}},
		{hook, config(`"url":"http://u@example.com?a=b#c"`) + versions, []string{
			at + `.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
			at + `.url: Invalid value: "u": user information is not permitted in the URL`,
			at + `.url: Invalid value: "c": fragments are not permitted in the URL`,
			at + `.url: Invalid value: "a=b": query parameters are not permitted in the URL`}},
		{hook, config(`"service":{"name":"s"}`) + versions, []string{at + ".service.name: Required value"}},
		{hook, service(`,"path":"convert"`) + versions, []string{at + `.service.path: Invalid value: "convert": must start with a '/'`}},
		{hook, service(`,"port":65536`) + versions, []string{
			`spec.conversion.webhook.clientConfig.service.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive`}},
		{hook, config(`"caBundle":"Cg==","url":"https://example.com"`) + versions, nil},
		{hook, service("") + `,"conversionReviewVersions":["v2"]`, []string{reviews + `: Invalid value: ["v2"]: must include at least one of v1, v1beta1`}},
		{hook, service("") + `,"conversionReviewVersions":["v1","v1","V"]`, []string{reviews + `[1]: Invalid value: "v1": duplicate version`, reviews + `[2]: Invalid value: "V": a DNS-1035 label must`}},
		{none, service("") + versions, []string{at + ": Forbidden: should not be set when strategy is not set to Webhook", reviews + ": Forbidden: should not be set when strategy is not set to Webhook"}},
	} {
		text := c.strategy
		if c.webhook != "" {
			text += `,"webhook":{` + c.webhook[1:] + `}`
		}
		o := definition(t, v, nil, `"spec":{"group"`, `"spec":{"conversion":`+text+`},"group"`)
		causes := validate(t, v, o, nil)
		require.Len(t, causes, len(c.want), "%s: %v", text, causes)
		for i, cause := range causes {
			assert.True(t, strings.HasPrefix(cause.Field+": "+cause.Message, c.want[i]), "%s: %s: %s", text, cause.Field, cause.Message)
		}
	}
}

// TestStoredConversionWebhookIsAccepted checks that an update may keep a violation that was stored
// before the rule existed.
func TestStoredConversionWebhookIsAccepted(t *testing.T) {
	v := compiled(t, names.Orch)
	hook := func(bundle, versions, plural string) *meta.Object {
		return definition(t, v, nil, `"spec":{"group"`, `"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://example.com","caBundle":"`+bundle+
			`"},"conversionReviewVersions":["`+versions+`"]}},"group"`, `"kind":"Widget"`, `"kind":"Widget","shortNames":["`+plural+`"]`)
	}
	assert.Empty(t, validate(t, v, hook("Cg==", "v7", "b"), hook("Cg==", "v7", "a")))
	assert.Len(t, validate(t, v, hook("Cg==", "v7", "b"), hook("", "v1", "a")), 1)
	established := hook("", "v1", "a")
	established.SetCondition("Established", "True", "InitialNamesAccepted", "")
	assert.Len(t, validate(t, v, hook("Cg==", "v7", "b"), established), 2)
}
