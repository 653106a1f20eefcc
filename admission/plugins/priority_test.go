package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestPriorityClassSetsPriority checks that a class sets the priority of pods, that pods with another
// priority or an unknown class are refused, and that only one class can be the default.
func TestPriorityClassSetsPriority(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST pods", body: podSpec("a", ``), want: `201 {spec: {priority: 0, preemptionPolicy: PreemptLowerPriority, priorityClassName: null}}`},
		step{do: "POST pods", body: podSpec("b", `, priority: 5`), want: `403 the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name`},
		step{do: "POST pods", body: podSpec("b", `, priorityClassName: none`), want: `403 no PriorityClass with name none was found`},
		step{do: "POST /apis/scheduling.k8s.io/v1/priorityclasses", body: `{metadata: {name: high}, value: 1000, preemptionPolicy: Never}`, want: `201`},
		step{do: "POST pods", body: podSpec("c", `, priorityClassName: high, priority: 1000`), want: `201 {spec: {priority: 1000, preemptionPolicy: Never}}`},
		step{do: "POST pods", body: podSpec("d", `, priorityClassName: high, preemptionPolicy: PreemptLowerPriority`), want: `403 the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name`},
		step{do: "POST pods", body: podSpec("d", `, priorityClassName: system-node-critical`), want: `201 {spec: {priority: 2000001000}}`},
		step{do: "POST /apis/scheduling.k8s.io/v1/priorityclasses", body: `{metadata: {name: usual}, value: 7, globalDefault: true}`, want: `201`},
		step{do: "POST /apis/scheduling.k8s.io/v1/priorityclasses", body: `{metadata: {name: other}, value: 8, globalDefault: true}`, want: `403 PriorityClass usual is already marked as default. Only one default can exist`},
		step{do: "PATCH /apis/scheduling.k8s.io/v1/priorityclasses/usual", body: `{description: the usual one}`, want: `200`},
		step{do: "POST pods", body: podSpec("e", ``), want: `201 {spec: {priority: 7, priorityClassName: usual}}`},
		step{do: "PATCH pods/a", body: `{metadata: {labels: {a: b}}}`, want: `200 {spec: {priority: 0}}`},
		step{do: "DELETE /apis/scheduling.k8s.io/v1/priorityclasses/usual", want: `200`},
		step{do: "DELETE /apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical", want: `403 this is a system priority class and cannot be deleted`},
		step{do: "PATCH pods/e", body: `{metadata: {labels: {a: b}}}`, want: `200 {spec: {priority: 7}}`},
	)
}
