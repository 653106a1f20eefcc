package plugins_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
)

// series returns the lines of /metrics that contain a word.
func series(t *testing.T, s *servertest.Server, word string) (lines []string) {
	response, err := s.Client().Get(s.Host() + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, word) && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestPolicyMetrics checks that the metrics of policies count their results, and disappear with the policy or
// binding.
func TestPolicyMetrics(t *testing.T) {
	s := servertest.New(t)
	const mutating = `{metadata: {name: adds}, spec: {reinvocationPolicy: Never, matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: ['*'], resources: [configmaps], operations: [CREATE]}]},
		mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}}]}}`
	runSteps(t, s,
		policyOf("told", `matchConditions: [{name: named, expression: "request.name != 'free'"}], validations: [{expression: "object.data.a == '1'"}]`),
		bindingOf("told", "validationActions: [Deny, Audit]"),
		step{do: "POST " + policyPath + "mutatingadmissionpolicies", body: mutating, want: "201"},
		step{do: "POST " + policyPath + "mutatingadmissionpolicybindings", body: `{metadata: {name: adds}, spec: {policyName: adds}}`, want: "201"},
		step{do: "POST configmaps", body: `{metadata: {name: good}, data: {a: '1'}}`, want: "201"},
		step{do: "POST configmaps", body: `{metadata: {name: bad}, data: {a: '2'}}`, want: "422 failed expression: object.data.a == '1'"},
		step{do: "POST configmaps", body: `{metadata: {name: none}, data: {b: '2'}}`, want: "422 no such key: a"},
		step{do: "POST configmaps", body: `{metadata: {name: free}, data: {a: '2'}}`, want: "201"},
	)
	const checks = `apiserver_validating_admission_policy_check_`
	told := strings.Join(append(series(t, s, `"told"`), series(t, s, `"adds"`)...), "\n")
	for _, line := range []string{
		checks + `total{enforcement_action="allow",error_type="no_error",policy="told",policy_binding="told"} 1`,
		checks + `total{enforcement_action="deny",error_type="no_error",policy="told",policy_binding="told"} 1`,
		checks + `total{enforcement_action="audit",error_type="no_error",policy="told",policy_binding="told"} 1`,
		checks + `total{enforcement_action="deny",error_type="invalid_error",policy="told",policy_binding="told"} 1`,
		checks + `duration_seconds_count{enforcement_action="allow",error_type="no_error",policy="told",policy_binding="told"} 1`,
		`apiserver_mutating_admission_policy_check_total{error_type="no_error",policy="adds",policy_binding="adds"} 4`,
		`apiserver_admission_match_condition_evaluation_seconds_count{kind="policy",name="told",operation="CREATE",type="validate"} 4`,
		`apiserver_admission_match_condition_exclusions_total{kind="policy",name="told",operation="CREATE",type="validate"} 1`,
	} {
		assert.Contains(t, told, line)
	}
	runSteps(t, s, step{do: "DELETE " + policyPath + "validatingadmissionpolicybindings/told", want: "200"})
	assert.Empty(t, series(t, s, `"told"`))
	runSteps(t, s, step{do: "DELETE " + policyPath + "mutatingadmissionpolicies/adds", want: "200"})
	assert.Empty(t, series(t, s, `"adds"`))
}
