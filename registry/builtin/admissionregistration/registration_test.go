package admissionregistration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/admissionregistration"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range admissionregistration.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind MutatingWebhookConfiguration.admissionregistration.orch.io (Go type admissionregistration.MutatingWebhookConfiguration)
	// kind ValidatingWebhookConfiguration.admissionregistration.orch.io (Go type admissionregistration.ValidatingWebhookConfiguration)
	// kind MutatingAdmissionPolicy.admissionregistration.orch.io (Go type admissionregistration.MutatingAdmissionPolicy)
	// kind MutatingAdmissionPolicyBinding.admissionregistration.orch.io (Go type admissionregistration.MutatingAdmissionPolicyBinding)
	// kind ValidatingAdmissionPolicy.admissionregistration.orch.io (Go type admissionregistration.ValidatingAdmissionPolicy)
	// kind ValidatingAdmissionPolicyBinding.admissionregistration.orch.io (Go type admissionregistration.ValidatingAdmissionPolicyBinding)
}

const (
	pods    = `"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]`
	webhook = `"name":"a.example.com","clientConfig":{"url":"https://x.example.com/p"},"sideEffects":"None","admissionReviewVersions":["v1"]`
)

func TestWebhooks(t *testing.T) {
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		k := kindtest.Of(t, names.Kubernetes, admissionregistration.Kinds(), kind)
		hook := func(text string) string { return `{"webhooks":[{` + webhook + text + `}]}` }
		client := func(text string) string {
			return strings.Replace(hook(``), `{"url":"https://x.example.com/p"}`, `{`+text+`}`, 1)
		}
		resources := func(list string) string {
			return hook(`,"rules":[{` + strings.Replace(pods, `["pods"]`, list, 1) + `}]`)
		}
		const at = "webhooks[0]."
		k.Creates(t, map[string][]string{
			`{}`:     nil,
			hook(``): nil,
			`{"webhooks":[{` + webhook + `},{` + webhook + `}]}`: {"Duplicate:webhooks[1].name"},
			`{"webhooks":[{}]}`: {"Required:" + at + "name", "Required:" + at + "sideEffects", "Required:" + at + "clientConfig", "Required:" + at + "admissionReviewVersions"},
			strings.Replace(hook(``), "a.example.com", "a.b", 1):                 {"Invalid:" + at + "name"},
			strings.Replace(hook(``), `"None"`, `"Some"`, 1):                     {"NotSupported:" + at + "sideEffects"},
			strings.Replace(hook(``), `["v1"]`, `["v2"]`, 1):                     {"Invalid:" + at + "admissionReviewVersions"},
			strings.Replace(hook(``), `["v1"]`, `["v1","v1","A"]`, 1):            {"Invalid:" + at + "admissionReviewVersions[1]", "Invalid:" + at + "admissionReviewVersions[2]"},
			hook(`,"timeoutSeconds":31`):                                         {"Invalid:" + at + "timeoutSeconds"},
			hook(`,"failurePolicy":"x","matchPolicy":"x"`):                       {"NotSupported:" + at + "failurePolicy", "NotSupported:" + at + "matchPolicy"},
			hook(`,"namespaceSelector":{"matchLabels":{"a b":"c"}}`):             {"Invalid:" + at + "namespaceSelector.matchLabels"},
			client(`"url":"https://x","service":{"namespace":"a","name":"b"}`):   {"Required:" + at + "clientConfig"},
			client(`"url":"http://x"`):                                           {"Invalid:" + at + "clientConfig.url"},
			client(`"url":":"`):                                                  {"Required:" + at + "clientConfig.url"},
			client(`"url":"https://u@/?q#f"`):                                    {"Invalid:" + at + "clientConfig.url", "Invalid:" + at + "clientConfig.url", "Invalid:" + at + "clientConfig.url", "Invalid:" + at + "clientConfig.url"},
			client(`"service":{}`):                                               {"Required:" + at + "clientConfig.service.name", "Required:" + at + "clientConfig.service.namespace"},
			client(`"service":{"namespace":"a"}`):                                {"Required:" + at + "clientConfig.service.namespace"},
			client(`"service":{"name":"b"}`):                                     {"Required:" + at + "clientConfig.service.name"},
			client(`"service":{"namespace":"a","name":"b","path":"x","port":0}`): {"Invalid:" + at + "clientConfig.service.path", "Invalid:" + at + "clientConfig.service.path", "Invalid:" + at + "clientConfig.service.port"},
			client(`"service":{"namespace":"a","name":"b","path":"/a//b"}`):      {"Invalid:" + at + "clientConfig.service.path"},
			client(`"service":{"namespace":"a","name":"b","path":"/A_b/"}`):      {"Invalid:" + at + "clientConfig.service.path"},
			hook(`,"rules":[{}]`):                                                {"Required:" + at + "rules[0].operations", "Required:" + at + "rules[0].apiGroups", "Required:" + at + "rules[0].apiVersions", "Required:" + at + "rules[0].resources"},
			hook(`,"rules":[{"operations":["*","CREATE"],"apiGroups":["*","a"],"apiVersions":["*","a"],"resources":["*","a"]}]`): {
				"Invalid:" + at + "rules[0].operations", "Invalid:" + at + "rules[0].apiGroups", "Invalid:" + at + "rules[0].apiVersions", "Invalid:" + at + "rules[0].resources"},
			hook(`,"rules":[{"operations":["x"],"apiGroups":[""],"apiVersions":[""],"resources":[""],"scope":"x"}]`): {
				"NotSupported:" + at + "rules[0].operations[0]", "Required:" + at + "rules[0].apiVersions[0]", "Required:" + at + "rules[0].resources[0]", "NotSupported:" + at + "rules[0].scope"},
			resources(`["*","a/b"]`):   nil,
			resources(`["*/*","a"]`):   {"Invalid:" + at + "rules[0].resources"},
			resources(`["*/a","b/a"]`): {"Invalid:" + at + "rules[0].resources[1]"},
			resources(`["a/*","a/b"]`): {"Invalid:" + at + "rules[0].resources[1]"},
			resources(`["*/*","*/a"]`): {"Invalid:" + at + "rules[0].resources[1]", "Invalid:" + at + "rules[0].resources"},
			hook(`,"matchConditions":[{},{"name":"a b","expression":"true"},{"name":"c","expression":"true"},{"name":"c","expression":" "}]`): {
				"Required:" + at + "matchConditions[0].expression", "Required:" + at + "matchConditions[0].name", "Invalid:" + at + "matchConditions[1].name",
				"Required:" + at + "matchConditions[3].expression", "Duplicate:" + at + "matchConditions[3].name"},
			hook(`,"matchConditions":[{"name":"a","expression":"` + strings.Repeat("x", 70_000) + `"}]`): {"TooLong:" + at + "matchConditions[0].expression"},
		})
		made, _ := k.Create(t, hook(`,"rules":[{`+pods+`}]`))
		require.Equal(t, int64(1), k.Cell(t, made, "Webhooks"))
		h := meta.NewObject(made.List("webhooks")[0].(map[string]any))
		require.Equal(t, []any{"Fail", "Equivalent", int64(10)}, []any{h.String("failurePolicy"), h.String("matchPolicy"), h.Int("timeoutSeconds")})
		require.Equal(t, "*", h.Objects("rules")[0].String("scope"))
		require.NotNil(t, h.Map("namespaceSelector"))
		require.NotNil(t, h.Map("objectSelector"))
	}
}

func TestPolicy(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, admissionregistration.Kinds(), "ValidatingAdmissionPolicy")
	policy := func(text string) string {
		return `{"spec":{"matchConstraints":{"resourceRules":[{` + pods + `}]}` + text + `}}`
	}
	const valid = `,"validations":[{"expression":"true"}]`
	validation := func(text string) string { return policy(`,"validations":[{` + text + `}]`) }
	annotations := func(list string) string { return policy(`,"auditAnnotations":[` + list + `]`) }
	constraints := func(text string) string {
		return `{"spec":{"matchConstraints":{` + text + `}` + valid + `}}`
	}
	const rule, v = "spec.matchConstraints.resourceRules", "spec.validations[0]."
	k.Creates(t, map[string][]string{
		`{}`:                                   {"Required:spec.matchConstraints", "Required:spec.validations", "Required:spec.auditAnnotations"},
		policy(valid):                          nil,
		policy(valid + `,"failurePolicy":"x"`): {"NotSupported:spec.failurePolicy"},
		policy(valid + `,"paramKind":{}`):      {"Required:spec.paramKind.apiVersion", "Required:spec.paramKind.kind"},
		policy(valid + `,"paramKind":{"apiVersion":"a/b/c","kind":"a b"}`):    {"Invalid:spec.paramKind.kind", "Invalid:spec.paramKind.apiVersion"},
		policy(valid + `,"paramKind":{"apiVersion":"A_B/A B","kind":"Lamp"}`): {"Invalid:spec.paramKind.apiVersion", "Invalid:spec.paramKind.apiVersion"},
		policy(valid + `,"paramKind":{"apiVersion":"v1","kind":"Lamp"}`):      nil,
		constraints(``):                     {"Required:" + rule},
		constraints(`"resourceRules":[{}]`): {"Required:" + rule + "[0].operations", "Required:" + rule + "[0].apiGroups", "Required:" + rule + "[0].apiVersions", "Required:" + rule + "[0].resources"},
		constraints(`"resourceRules":[{` + pods + `,"resourceNames":["a","a","A/B"]}]`): {"Invalid:" + rule + "[0].resourceNames[2]", "Duplicate:" + rule + "[0].resourceNames[1]"},
		constraints(`"resourceRules":[{` + pods + `}],"excludeResourceRules":[{` + pods + `,"scope":"x"}],"matchPolicy":"x"`): {
			"NotSupported:spec.matchConstraints.excludeResourceRules[0].scope", "NotSupported:spec.matchConstraints.matchPolicy"},
		validation(``): {"Required:" + v + "expression"},
		validation(`"expression":"true","message":"a\nb"`):                                 {"Invalid:" + v + "message"},
		validation(`"expression":"true","message":" "`):                                    {"Invalid:" + v + "message"},
		validation(`"expression":"true","messageExpression":" "`):                          {"Invalid:" + v + "messageExpression"},
		validation(`"expression":"true","messageExpression":"'x'"`):                        nil,
		validation(`"expression":"true","messageExpression":"x"`):                          {"Invalid:spec.validations[0].messageExpression"},
		validation(strings.Repeat(`"expression":"true"},{`, 1000) + `"expression":"true"`): {"TooMany:spec.validations"},
		validation(`"expression":"1"`):                                                     {"Invalid:spec.validations[0].expression"},
		validation(`"expression":"true","reason":"x"`):                                     {"NotSupported:" + v + "reason"},
		annotations(`{"key":"k","valueExpression":"'x'"}`):                                 nil,
		annotations(`{"key":"a b","valueExpression":"'x'"},{"key":"c"},{"key":"c","valueExpression":"'x'"}`): {
			"Invalid:spec.auditAnnotations[0].key", "Required:spec.auditAnnotations[1].valueExpression", "Duplicate:spec.auditAnnotations[2].key"},
		policy(valid + `,"variables":[{},{"name":"a b","expression":"1"}]`): {"Required:spec.variables[0].name", "Required:spec.variables[0].expression", "Invalid:spec.variables[1].name"},
	})
	made, _ := k.Create(t, policy(valid+`,"paramKind":{"apiVersion":"v1","kind":"Lamp"}`))
	require.Equal(t, []any{int64(1), "v1/Lamp"}, []any{k.Cell(t, made, "Validations"), k.Cell(t, made, "ParamKind")})
	require.NotNil(t, made.Map("spec", "matchConstraints", "objectSelector"))
	_, faults := k.Update(t, made, `{"status":{"conditions":[{"type":"a b","status":"True","reason":"-","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	require.Equal(t, []string{"Invalid:status.conditions[0].type", "Invalid:status.conditions[0].reason"}, faults)
	_, faults = k.Update(t, made, `{"status":{"typeChecking":{"expressionWarnings":[{}]}}}`, "status")
	require.Equal(t, []string{"Required:status.typeChecking.expressionWarnings[0].warning", "Required:status.typeChecking.expressionWarnings[0].fieldRef"}, faults)
}

func TestBinding(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, admissionregistration.Kinds(), "ValidatingAdmissionPolicyBinding")
	binding := func(text string) string {
		return `{"spec":{"policyName":"p","validationActions":["Deny"]` + text + `}}`
	}
	k.Creates(t, map[string][]string{
		`{}`:        {"Required:spec.policyName", "Required:spec.validationActions"},
		binding(``): nil,
		`{"spec":{"policyName":"A B","validationActions":["x"]}}`:           {"Invalid:spec.policyName", "NotSupported:spec.validationActions[0]"},
		`{"spec":{"policyName":"p","validationActions":["Deny","Warn"]}}`:   {"Invalid:spec.validationActions"},
		`{"spec":{"policyName":"p","validationActions":["Audit","Audit"]}}`: {"Duplicate:spec.validationActions[1]"},
		binding(`,"paramRef":{}`): {"Required:spec.paramRef.parameterNotFoundAction", "Required:spec.paramRef"},
		binding(`,"paramRef":{"name":"a","selector":{},"parameterNotFoundAction":"x"}`): {
			"Forbidden:spec.paramRef.name", "Forbidden:spec.paramRef.selector", "NotSupported:spec.paramRef.parameterNotFoundAction"},
		binding(`,"paramRef":{"name":"A/B","parameterNotFoundAction":"Deny"}`): {"Invalid:spec.paramRef.name"},
		binding(`,"matchResources":{}`):                                        nil,
		binding(`,"matchResources":{"resourceRules":[{}]}`):                    {"Required:spec.matchResources.resourceRules[0].operations", "Required:spec.matchResources.resourceRules[0].apiGroups", "Required:spec.matchResources.resourceRules[0].apiVersions", "Required:spec.matchResources.resourceRules[0].resources"},
	})
	for ref, cell := range map[string]string{`{"name":"a","parameterNotFoundAction":"Deny"}`: "*/a", `{"name":"a","namespace":"n","parameterNotFoundAction":"Deny"}`: "n/a", `null`: "<unset>"} {
		made, _ := k.Create(t, binding(`,"paramRef":`+ref))
		require.Equal(t, cell, k.Cell(t, made, "ParamRef"))
	}
}

func TestMutatingPolicy(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, admissionregistration.Kinds(), "MutatingAdmissionPolicy")
	policy := func(rule, text string) string {
		return `{"spec":{"reinvocationPolicy":"Never","matchConstraints":{"resourceRules":[{` + rule + `}]},` + text + `}}`
	}
	fields := func(expression string) string {
		return policy(pods, `"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"`+expression+`"}}]`)
	}
	patch := func(expression string) string {
		return policy(pods, `"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"`+expression+`"}}]`)
	}
	const at = "spec.mutations[0]."
	k.Creates(t, map[string][]string{
		`{}`:               {"Required:spec.matchConstraints", "Required:spec.mutations", "Required:spec.reinvocationPolicy"},
		fields(`Object{}`): nil,
		strings.Replace(fields(`Object{}`), "Never", "x", 1):                 {"NotSupported:spec.reinvocationPolicy"},
		strings.Replace(fields(`Object{}`), "CREATE", "DELETE", 1):           {"NotSupported:spec.matchConstraints.resourceRules.operations"},
		fields(`Object{spec: Object.spec{a: [Object.spec.a{b: params.c}]}}`): {"Invalid:" + at + "applyConfiguration.expression"},
		fields(` `):        {"Required:" + at + "applyConfiguration.expression"},
		fields(`{'a': 1}`): {"Invalid:" + at + "applyConfiguration.expression"},
		patch(`[JSONPatch{op: 'add', path: '/a', value: Object.a{b: 1}}, JSONPatch{op: 'copy', from: '/b', path: '/c'}]`): nil,
		patch(`[JSONPatch{operation: 'add'}]`):          {"Invalid:" + at + "jsonPatch.expression"},
		patch(`JSONPatch{op: 'add', path: '/a'}`):       {"Invalid:" + at + "jsonPatch.expression"},
		patch(`Object{}`):                               {"Invalid:" + at + "jsonPatch.expression"},
		policy(pods, `"mutations":[{}]`):                {"Required:" + at + "patchType"},
		policy(pods, `"mutations":[{"patchType":"x"}]`): {"NotSupported:" + at + "patchType"},
		policy(pods, `"mutations":[{"patchType":"JSONPatch","applyConfiguration":{"expression":"Object{}"}}]`): {
			"Required:" + at + "jsonPatch", "Invalid:" + at + "applyConfiguration"},
		policy(pods, `"mutations":[{"patchType":"ApplyConfiguration","jsonPatch":{"expression":"[]"}}]`): {
			"Required:" + at + "applyConfiguration", "Invalid:" + at + "jsonPatch"},
		policy(pods, `"variables":[{"name":"a","expression":"Object{}"}],"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"variables.a"}}]`): {
			"Invalid:spec.variables[0].expression", "Invalid:" + at + "applyConfiguration.expression"},
	})
	made, _ := k.Create(t, fields(`Object{}`))
	require.Equal(t, []any{int64(1), "<unset>"}, []any{k.Cell(t, made, "Mutations"), k.Cell(t, made, "ParamKind")})
	require.Equal(t, "Fail", made.String("spec", "failurePolicy"))
	require.NotNil(t, made.Map("spec", "matchConstraints", "namespaceSelector"))

	b := kindtest.Of(t, names.Kubernetes, admissionregistration.Kinds(), "MutatingAdmissionPolicyBinding")
	b.Creates(t, map[string][]string{
		`{}`:                          {"Required:spec.policyName"},
		`{"spec":{"policyName":"p"}}`: nil,
		`{"spec":{"policyName":"p","paramRef":{}}}`: {"Required:spec.paramRef.parameterNotFoundAction", "Required:spec.paramRef"},
		`{"spec":{"policyName":"p","matchResources":{"resourceRules":[{` + strings.Replace(pods, "CREATE", "DELETE", 1) + `}]}}}`: {
			"NotSupported:spec.matchResources.resourceRules.operations"},
	})
}
