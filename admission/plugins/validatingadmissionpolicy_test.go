package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// policyPath is the path of policies and bindings.
const policyPath = "/apis/admissionregistration.k8s.io/v1/"

// policyOf returns a step that creates a policy for ConfigMaps with the given fields of its spec.
func policyOf(name, spec string) step {
	return step{do: "POST " + policyPath + "validatingadmissionpolicies", want: "201", body: `{metadata: {name: ` + name + `}, spec: {
		matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: ['*'], resources: [configmaps], operations: [CREATE, UPDATE]}]}, ` + spec + `}}`}
}

// bindingOf returns a step that creates a binding of a policy with the given fields of its spec.
func bindingOf(name, spec string) step {
	return step{do: "POST " + policyPath + "validatingadmissionpolicybindings", want: "201", body: `{metadata: {name: ` + name + `}, spec: {policyName: ` + name + `, ` + spec + `}}`}
}

func TestValidatingAdmissionPolicy(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{}),
		policyOf("size", `validations: [{expression: "!has(object.data) || object.data.size() < 2"}]`),
		step{do: "POST configmaps", body: `{metadata: {name: a}, data: {a: '1', b: '2'}}`, want: "201"}, // the policy has no binding
		bindingOf("size", "validationActions: [Deny]"),
		step{do: "POST configmaps", body: `{metadata: {name: b}, data: {a: '1', b: '2'}}`, want: `422 ValidatingAdmissionPolicy 'size' with binding 'size' denied request: failed expression: !has(object.data) || object.data.size() < 2`},
		step{do: "POST configmaps", body: `{metadata: {name: b}, data: {a: '1'}}`, want: "201"},
		step{do: "PATCH configmaps/b", body: `{data: {c: '1'}}`, want: `422 failed expression: !has(object.data) || object.data.size() < 2`},
		step{do: "DELETE " + policyPath + "validatingadmissionpolicybindings/size", want: "200"},
		step{do: "PATCH configmaps/b", body: `{data: {c: '1'}}`, want: "200"},

		policyOf("words", `variables: [{name: who, expression: request.userInfo.username}],
			matchConditions: [{name: named, expression: "request.name != 'free'"}],
			validations: [{expression: "variables.who != 'jane'", messageExpression: "variables.who + ' may not'", reason: Forbidden}]`),
		bindingOf("words", "validationActions: [Deny]"),
		step{as: "jane,system:masters", do: "POST configmaps", body: `{metadata: {name: c}}`, want: `403 configmaps "c" is forbidden: ValidatingAdmissionPolicy 'words' with binding 'words' denied request: jane may not`},
		step{as: "jane,system:masters", do: "POST configmaps", body: `{metadata: {name: free}}`, want: "201"},
		step{as: "joe,system:masters", do: "POST configmaps", body: `{metadata: {name: c}}`, want: "201"},
		step{do: "DELETE " + policyPath + "validatingadmissionpolicies/words", want: "200"},
		step{as: "jane,system:masters", do: "POST configmaps", body: `{metadata: {name: d}}`, want: "201"},

		policyOf("warns", `validations: [{expression: "false", message: no good}]`),
		bindingOf("warns", "validationActions: [Warn, Audit]"),
		step{do: "POST configmaps", body: `{metadata: {name: e}}`, want: "201", warn: "Validation failed for ValidatingAdmissionPolicy 'warns' with binding 'warns': no good"},
		step{do: "DELETE " + policyPath + "validatingadmissionpolicies/warns", want: "200"},

		policyOf("fails", `validations: [{expression: object.spec.nothing == 1}]`),
		bindingOf("fails", "validationActions: [Deny]"),
		step{do: "POST configmaps", body: `{metadata: {name: f}}`, want: "422 expression 'object.spec.nothing == 1' resulted in error: no such key: spec"},
		step{do: "PATCH " + policyPath + "validatingadmissionpolicies/fails", body: "{spec: {failurePolicy: Ignore}}", want: "200"},
		step{do: "POST configmaps", body: `{metadata: {name: f}}`, want: "201"},
		step{do: "DELETE " + policyPath + "validatingadmissionpolicies/fails", want: "200"},

		policyOf("params", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "object.metadata.name.size() <= int(params.data.most)"}]`),
		bindingOf("params", "validationActions: [Deny], paramRef: {name: most, parameterNotFoundAction: Deny}"),
		step{do: "POST configmaps", body: `{metadata: {name: g}}`, want: "422 failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: other}}`, want: "201"},
	)
}

// TestParametersHaveTheirVersion checks that expressions see parameters in the version that paramKind names.
func TestParametersHaveTheirVersion(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{}),
		policyOf("limit", `paramKind: {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler}, validations: [{expression: "object.data.size() <= params.spec.targetCPUUtilizationPercentage"}]`),
		bindingOf("limit", "validationActions: [Deny], paramRef: {name: h, parameterNotFoundAction: Deny}"),
		step{do: "POST /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", want: "201", body: `{metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1},
			metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1}}}]}}`},
		step{do: "POST configmaps", body: `{metadata: {name: a}, data: {a: '1'}}`, want: "201"},
		step{do: "POST configmaps", body: `{metadata: {name: b}, data: {a: '1', b: '2'}}`, want: "422 failed expression: object.data.size() <= params.spec.targetCPUUtilizationPercentage"},
	)
}

// TestTypeChecking checks that the status of a policy reports type errors, bound or not.
func TestTypeChecking(t *testing.T) {
	s := newServer(t, admission.Options{})
	policy := func(name, rules, spec string) step {
		return step{do: "POST " + policyPath + "validatingadmissionpolicies", want: "201", body: `{metadata: {name: ` + name + `}, spec: {matchConstraints: {resourceRules: [` + rules + `]}, ` + spec + `}}`}
	}
	const deployments = `{apiGroups: [apps], apiVersions: [v1], resources: [deployments, replicasets, nothings], operations: [CREATE]}`
	runSteps(t, s,
		policy("fits", deployments, `variables: [{name: count, expression: object.spec.replicas}], validations: [{expression: "variables.count > 1 && object.metadata.labels['a'] == 'b' && object.apiVersion != ''"}]`),
		policy("unfit", deployments, `validations: [{expression: object.spec.replicas > '1'}, {expression: object.spec.strategy.type == 'x', messageExpression: string(object.nothing)}]`),
		policy("all", `{apiGroups: ['*'], apiVersions: [v1], resources: [deployments], operations: [CREATE]}`, `validations: [{expression: object.nothing == 1}]`),
		policy("params", deployments, `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: params.data.a == 1}]`))
	s.Settle()
	get := func(name string) string { return "GET " + policyPath + "validatingadmissionpolicies/" + name }
	runSteps(t, s,
		step{do: get("fits"), want: "200 {status: {observedGeneration: 1, typeChecking: {}}}"},
		step{do: get("all"), want: "200 {status: {observedGeneration: 1, typeChecking: {}}}"},
		step{do: get("params"), want: `200 {status: {typeChecking: {expressionWarnings: [{fieldRef: 'spec.validations[0].expression'}]}}}`},
		step{do: get("unfit"), want: `200 {status: {observedGeneration: 1, typeChecking: {expressionWarnings: [
			{fieldRef: 'spec.validations[0].expression', warning: "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > '1'\n | .....................^\n\napps/v1, Kind=ReplicaSet: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > '1'\n | .....................^\n"},
			{fieldRef: 'spec.validations[1].expression', warning: "apps/v1, Kind=ReplicaSet: ERROR: <input>:1:12: undefined field 'strategy'\n | object.spec.strategy.type == 'x'\n | ...........^\n"},
			{fieldRef: 'spec.validations[1].messageExpression', warning: "apps/v1, Kind=Deployment: ERROR: <input>:1:14: undefined field 'nothing'\n | string(object.nothing)\n | .............^\n\napps/v1, Kind=ReplicaSet: ERROR: <input>:1:14: undefined field 'nothing'\n | string(object.nothing)\n | .............^\n"}]}}}`})
	runSteps(t, s, step{do: "PATCH " + policyPath + "validatingadmissionpolicies/all", body: `{spec: {matchConstraints: {resourceRules: [` + deployments + `]}}}`, want: "200"})
	s.Settle()
	runSteps(t, s, step{do: get("all"), want: "200 {status: {observedGeneration: 2, typeChecking: {expressionWarnings: [{fieldRef: 'spec.validations[0].expression'}]}}}"})
}

// TestMessageExpressionsDoNotSeeTheAuthorizer checks that a message expression cannot use the authorizer,
// except through variables.
func TestMessageExpressionsDoNotSeeTheAuthorizer(t *testing.T) {
	policy := func(message, want string) step {
		s := policyOf("p", `variables: [{name: may, expression: "string(authorizer.path('/').check('get').allowed())"}],
			validations: [{expression: "false", messageExpression: "`+message+`"}]`)
		s.want = want
		return s
	}
	const refused = "422 undeclared reference to 'authorizer' (in container '')"
	runSteps(t, newServer(t, admission.Options{}),
		policy("authorizer.path('/').check('get').reason()", refused+"\n | authorizer.path('/').check('get').reason()\n | ^"),
		policy("authorizer.requestResource.check('get').reason()", refused+"\n | authorizer.requestResource.check('get').reason()\n | ^"),
		policy("'allowed: ' + variables.may", "201"),
		bindingOf("p", "validationActions: [Deny]"),
		step{do: "POST configmaps", body: "{metadata: {name: a}}", want: "422 allowed: true"},
	)
}
