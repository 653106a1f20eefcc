package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestPolicyParameters checks the rights that paramKind and paramRef require.
func TestPolicyParameters(t *testing.T) {
	const at = "/apis/admissionregistration.k8s.io/v1/"
	const jane, reader, other = "jane,without get secrets,without list secrets,without get *,without list *", "jane", "jane,without get secrets"
	policy := func(name, kind string) string {
		return `{metadata: {name: ` + name + `}, spec: {` + kind + `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]},
			validations: [{expression: "true"}]}}`
	}
	binding := func(name, of, ref string) string {
		return `{metadata: {name: ` + name + `}, spec: {policyName: ` + of + `, validationActions: [Deny], paramRef: {namespace: default, parameterNotFoundAction: Deny, ` + ref + `}}}`
	}
	const secrets, unknown = `paramKind: {apiVersion: v1, kind: Secret}, `, `paramKind: {apiVersion: no.example/v1, kind: Nix}, `
	const refused = `422 spec.paramKind: Forbidden: user "jane" must have "get" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)`
	const named = `422 spec.paramRef: Forbidden: user "jane" does not have "get" permission on the object referenced by paramRef`
	runSteps(t, newServer(t, admission.Options{}),
		step{as: jane, do: "POST " + at + "validatingadmissionpolicies", body: policy("p", secrets), want: refused},
		step{as: jane, do: "POST " + at + "validatingadmissionpolicies", body: policy("p", unknown), want: `422 (kind=Nix, apiVersion=no.example/v1)`},
		step{as: jane, do: "POST " + at + "validatingadmissionpolicies", body: policy("none", ``), want: `201`},
		step{as: reader, do: "POST " + at + "validatingadmissionpolicies", body: policy("p", secrets), want: `201`},
		step{as: jane, do: "PATCH " + at + "validatingadmissionpolicies/p", body: `{metadata: {labels: {a: b}}, spec: {failurePolicy: Ignore}}`, want: `200`},
		step{as: jane, do: "PATCH " + at + "validatingadmissionpolicies/none", body: `{spec: {paramKind: {apiVersion: v1, kind: Secret}}}`, want: refused},

		step{as: jane, do: "POST " + at + "validatingadmissionpolicybindings", body: binding("b", "p", `name: a`), want: named},
		step{as: jane, do: "POST " + at + "validatingadmissionpolicybindings", body: binding("b", "p", `selector: {}`),
			want: `422 spec.paramRef: Forbidden: user "jane" does not have "list" permission on the object referenced by paramRef`},
		step{as: other, do: "POST " + at + "validatingadmissionpolicybindings", body: binding("s", "p", `selector: {}`), want: `201`},
		step{as: jane, do: "POST " + at + "validatingadmissionpolicybindings", body: binding("b", "none", `name: a`), want: named},
		step{as: jane, do: "POST " + at + "validatingadmissionpolicybindings", body: binding("b", "gone", `name: a`),
			want: `422 spec.paramRef: Forbidden: unable to get policy gone to determine minimum required permissions and user "jane" does not have "get" permission for all groups, versions and resources`},
		step{as: reader, do: "POST " + at + "validatingadmissionpolicybindings", body: binding("b", "p", `name: a`), want: `201`},
		step{as: jane, do: "PATCH " + at + "validatingadmissionpolicybindings/b", body: `{metadata: {labels: {a: b}}}`, want: named},
		step{as: jane, do: "PATCH " + at + "validatingadmissionpolicybindings/b", body: `{spec: {paramRef: null}}`, want: `200`},
	)
}
