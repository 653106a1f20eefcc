package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestPoliciesGuardWebhookConfigurations checks that policies apply to webhook configurations, but not to
// policies and bindings, which could otherwise not be removed.
func TestPoliciesGuardWebhookConfigurations(t *testing.T) {
	const rules = `matchConstraints: {resourceRules: [{apiGroups: [admissionregistration.k8s.io], apiVersions: ['*'], resources: ['*'], operations: ['*']}]}`
	const refused = "422 failed expression: object == null || object.metadata.name == 'a'"
	validating, mutating := policyPath+"validatingwebhookconfigurations", policyPath+"mutatingwebhookconfigurations"
	s := servertest.New(t)
	runSteps(t, s, changing("m", "'*'", "admissionregistration.k8s.io", "mutations: ["+patching(`[JSONPatch{op: 'add', path: '/metadata/labels', value: {'seen': 'yes'}}]`)+"]")...)
	runSteps(t, s,
		step{do: "POST " + validating, body: "{metadata: {name: b}}", want: "201 {metadata: {labels: {seen: 'yes'}}}"},
		step{do: "POST " + mutating, body: "{metadata: {name: b}}", want: "201 {metadata: {labels: {seen: 'yes'}}}"},
		step{do: "POST " + policyPath + "validatingadmissionpolicies", want: "201",
			body: `{metadata: {name: p}, spec: {` + rules + `, validations: [{expression: "object == null || object.metadata.name == 'a'"}]}}`},
		bindingOf("p", "validationActions: [Deny]"),
		step{do: "POST " + validating, body: "{metadata: {name: a}}", want: "201"},
		step{do: "POST " + mutating, body: "{metadata: {name: a}}", want: "201"},
		step{do: "POST " + mutating, body: "{metadata: {name: c}}", want: refused},
		step{do: "PATCH " + validating + "/b", body: "{metadata: {labels: {a: b}}}", want: refused},
		step{do: "DELETE " + validating + "/b", want: "200"},

		policyOf("q", `validations: [{expression: "true"}]`),
		bindingOf("q", "validationActions: [Deny]"),
		step{do: "PATCH " + policyPath + "mutatingadmissionpolicies/m", body: "{metadata: {annotations: {a: b}}}", want: "200 {metadata: {labels: null}}"},
		step{do: "DELETE " + policyPath + "mutatingadmissionpolicies/m", want: "200"},
		step{do: "DELETE " + policyPath + "validatingadmissionpolicies/p", want: "200"},
	)
}

// TestTerminatingNamespaceRefusesBindings checks that NamespaceLifecycle exempts only access reviews, not
// other kinds that are not stored.
func TestTerminatingNamespaceRefusesBindings(t *testing.T) {
	const binding = `{metadata: {name: p}, target: {kind: Node, name: n1}}`
	reviews := func(b *server.Builder) { b.Register(review.Access(b.Authorizer)...) }
	runSteps(t, newServer(t, admission.Options{}, reviews),
		step{do: "POST /api/v1/namespaces", body: "{metadata: {name: gone}}", want: "201"},
		step{do: "POST /api/v1/namespaces/gone/pods", body: podSpec("p", ""), want: "201"},
		step{do: "PATCH /api/v1/namespaces/gone/pods/p", body: "{metadata: {finalizers: [a.io/b]}}", want: "200"},
		step{do: "DELETE /api/v1/namespaces/gone", want: "200"},
		step{do: "POST /api/v1/namespaces/gone/bindings", body: binding,
			want: "403 unable to create new content in namespace gone because it is being terminated"},
		step{do: "POST /api/v1/namespaces/none/bindings", body: binding, want: `404 namespaces "none" not found`},
		step{do: "POST /apis/authorization.k8s.io/v1/namespaces/none/localsubjectaccessreviews", want: "201",
			body: "{metadata: {namespace: none}, spec: {user: jane, resourceAttributes: {namespace: none, verb: get, resource: pods}}}"},
		step{do: "PATCH /api/v1/namespaces/gone/pods/p", body: "{metadata: {finalizers: null}}", want: "200"},
	)
}

// TestExemptionsOfPods checks that mirror pods cannot reference secrets or get ephemeral containers, and that
// the exemptions of a namespace apply to updates.
func TestExemptionsOfPods(t *testing.T) {
	mirror := func(spec string) string {
		return `{metadata: {name: m, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n1, containers: [{name: c, image: i}]` + spec + `}}`
	}
	runSteps(t, newServer(t, admission.Options{Enable: []string{"PodTolerationRestriction", "LimitPodHardAntiAffinityTopology"}}),
		step{do: "POST pods", body: mirror(", imagePullSecrets: [{name: s}]"), want: "403 a mirror pod may not reference secrets"},
		step{do: "POST pods", body: mirror(", volumes: [{name: v, csi: {driver: d.io, nodePublishSecretRef: {name: s}}}]"), want: "403 a mirror pod may not reference secrets"},
		step{do: "POST pods", body: mirror(""), want: "201"},
		step{do: "PATCH pods/m/ephemeralcontainers", body: "{spec: {ephemeralContainers: [{name: e, image: i}]}}",
			want: "403 no service account specified for pod default/m"},

		step{do: "POST pods", body: podSpec("p", ", tolerations: [{key: a, operator: Exists}]"), want: "201"},
		step{do: "PATCH /api/v1/namespaces/default", want: "200",
			body: `{metadata: {annotations: {scheduler.alpha.kubernetes.io/tolerationsWhitelist: '[{"key":"b","operator":"Exists"}]'}}}`},
		step{do: "PATCH pods/p", body: "{metadata: {labels: {a: b}}}",
			want: "403 pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"},
	)
}
