package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestSecurityContextDeny checks that users, groups and labels are refused in pods and in all their
// containers, ephemeral ones included.
func TestSecurityContextDeny(t *testing.T) {
	of := func(context string) string { return `{securityContext: ` + context + `, ` + plain[1:] }
	container := func(list, context string) string {
		return `{` + list + `: [{name: i, image: x, securityContext: ` + context + `}], ` + plain[1:]
	}
	const users = "{runAsUser: 7}"
	runSteps(t, newServer(t, admission.Options{Enable: []string{"SecurityContextDeny"}}),
		step{do: "POST pods", body: named("x", of("{supplementalGroups: [7]}")), want: "403 forbidden: pod.Spec.SecurityContext.SupplementalGroups is forbidden"},
		step{do: "POST pods", body: named("x", of("{seLinuxOptions: {level: s0}}")), want: "403 forbidden: pod.Spec.SecurityContext.SELinuxOptions is forbidden"},
		step{do: "POST pods", body: named("x", of(users)), want: "403 forbidden: pod.Spec.SecurityContext.RunAsUser is forbidden"},
		step{do: "POST pods", body: named("x", of("{fsGroup: 7}")), want: "403 forbidden: pod.Spec.SecurityContext.FSGroup is forbidden"},
		step{do: "POST pods", body: named("x", container("initContainers", users)), want: "403 forbidden: SecurityContext.RunAsUser is forbidden"},
		step{do: "POST pods", body: named("x", `{containers: [{name: c, image: x, securityContext: {seLinuxOptions: {level: s0}}}]}`), want: "403 forbidden: SecurityContext.SELinuxOptions is forbidden"},
		step{do: "POST pods", body: named("x", `{securityContext: {runAsNonRoot: true}, containers: [{name: c, image: x, securityContext: {privileged: true, runAsGroup: 7}}]}`), want: "201"},
		step{do: "PATCH pods/x/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: x, securityContext: ` + users + `}]}}`, want: "403 forbidden: SecurityContext.RunAsUser is forbidden"},
		step{do: "PATCH pods/x/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: x}]}}`, want: "200"},
		step{do: "POST podtemplates", body: `{metadata: {name: x}, template: {spec: ` + of(users) + `}}`, want: "201"},
	)
}
