package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/server"
)

// TestPolicyErrors checks that an expression that fails takes the validation actions of the binding, and that
// missing parameters refuse the request.
func TestPolicyErrors(t *testing.T) {
	const wrong = `object.nothing.x == 1`
	gone := step{do: "DELETE " + policyPath + "validatingadmissionpolicies/p", want: "200"}
	unbind := step{do: "DELETE " + policyPath + "validatingadmissionpolicybindings/p", want: "200"}
	try := func(want, warn string) step {
		return step{do: "POST configmaps?dryRun=All", body: `{metadata: {name: a}}`, want: want, warn: warn}
	}
	const text = "expression '" + wrong + "' resulted in error: no such key: nothing"
	runSteps(t, newServer(t, admission.Options{}),
		policyOf("p", `validations: [{expression: "`+wrong+`", reason: Forbidden}]`),
		bindingOf("p", "validationActions: [Warn]"),
		try("201", "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': "+text), unbind,
		bindingOf("p", "validationActions: [Audit]"), try("201", ""), unbind,
		bindingOf("p", "validationActions: [Deny, Audit]"), try("422 denied request: "+text, ""), unbind, gone,

		policyOf("p", `matchConditions: [{name: c, expression: "`+wrong+`"}], validations: [{expression: "false"}]`),
		bindingOf("p", "validationActions: [Warn]"), try("201", ""), unbind,
		bindingOf("p", "validationActions: [Deny]"), try("422 denied request: "+text, ""), unbind, gone,

		policyOf("p", `auditAnnotations: [{key: k, valueExpression: string(object.nothing)}]`),
		bindingOf("p", "validationActions: [Warn]"), try("201", ""), unbind,
		bindingOf("p", "validationActions: [Deny]"), try("422 audit annotation 'k' resulted in error: no such key: nothing", ""), unbind, gone,

		policyOf("p", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "true"}]`),
		bindingOf("p", "validationActions: [Warn], paramRef: {name: nope, parameterNotFoundAction: Deny}"),
		try("422 no params found for policy binding with `Deny` parameterNotFoundAction", ""), unbind, gone,
	)
}

// TestPolicyParams checks that a binding finds parameters by name or selector, in the namespace that it names
// or the request's.
func TestPolicyParams(t *testing.T) {
	unbind := step{do: "DELETE " + policyPath + "validatingadmissionpolicybindings/p", want: "200"}
	longest := func(namespace, name, labels, most string) step {
		return step{do: "POST /api/v1/namespaces/" + namespace + "/configmaps", want: "201",
			body: `{metadata: {name: ` + name + `, labels: {` + labels + `}}, data: {most: '` + most + `'}}`}
	}
	try := func(namespace, name, want string) step {
		return step{do: "POST /api/v1/namespaces/" + namespace + "/configmaps?dryRun=All", body: `{metadata: {name: ` + name + `}}`, want: want}
	}
	const refused = `422 failed expression: object.metadata.name.size() <= int(params.data.most)`
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: other}}`, want: "201"},
		longest("default", "m", "a: b", "3"), longest("default", "q", "a: b", "5"), longest("other", "m", "", "6"),
		policyOf("p", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "object.metadata.name.size() <= int(params.data.most)"}]`),
		bindingOf("p", "validationActions: [Deny], paramRef: {name: m, parameterNotFoundAction: Deny}"),
		try("default", "abc", "201"), try("default", "abcd", refused), try("other", "abcd", "201"), try("other", "abcdefg", refused), unbind,
		bindingOf("p", "validationActions: [Deny], paramRef: {name: m, namespace: default, parameterNotFoundAction: Deny}"),
		try("other", "abcd", refused), unbind,
		bindingOf("p", "validationActions: [Deny], paramRef: {selector: {matchLabels: {a: b}}, parameterNotFoundAction: Allow}"),
		try("default", "abcd", refused), try("default", "abc", "201"), try("other", "abcdefghi", "201"), unbind,
		bindingOf("p", "validationActions: [Deny], paramRef: {selector: {matchLabels: {a: c}}, parameterNotFoundAction: Deny}"),
		try("default", "a", "422 no params found for policy binding with `Deny` parameterNotFoundAction"), unbind,
		bindingOf("p", `validationActions: [Deny], paramRef: {name: m, parameterNotFoundAction: Deny},
			matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: ['*'], resources: [configmaps], operations: [CREATE], resourceNames: [abcdef]}]}`),
		try("default", "abcdef", "201"), try("default", "abcdeg", refused),
	)
}

// TestPolicyForAllResources checks that a policy for all resources applies neither to reviews nor to policies
// and bindings, and that it sees no namespaceObject for a namespace.
func TestPolicyForAllResources(t *testing.T) {
	reviews := func(b *server.Builder) {
		b.Register(review.Access(b.Authorizer)...)
		b.Register(review.Identity(nil, nil)...)
	}
	runSteps(t, newServer(t, admission.Options{}, reviews),
		step{do: "POST " + policyPath + "validatingadmissionpolicies", want: "201", body: `{metadata: {name: p}, spec: {
			matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: ['*']}]},
			validations: [{expression: "request.resource.resource == 'namespaces' && namespaceObject == null"}]}}`},
		bindingOf("p", "validationActions: [Deny]"),
		step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: "422 failed expression: request.resource.resource == 'namespaces' && namespaceObject == null"},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: other}}`, want: "201"},
		step{do: "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body: `{spec: {nonResourceAttributes: {path: /, verb: get}}}`, want: "201"},
		step{do: "POST /apis/authentication.k8s.io/v1/selfsubjectreviews", body: `{}`, want: "201"},
		step{do: "DELETE " + policyPath + "validatingadmissionpolicybindings/p", want: "200"},
	)
}
