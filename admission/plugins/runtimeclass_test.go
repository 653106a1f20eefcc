package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestRuntimeClass checks that overhead and scheduling of a class are set on its pods, and that conflicting
// values are refused.
func TestRuntimeClass(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST /apis/node.k8s.io/v1/runtimeclasses", body: `{metadata: {name: sandbox}, handler: h, overhead: {podFixed: {cpu: 100m}}, scheduling: {nodeSelector: {rt: "yes"}, tolerations: [{key: rt, operator: Exists}]}}`, want: `201`},
		step{do: "POST /apis/node.k8s.io/v1/runtimeclasses", body: `{metadata: {name: plain}, handler: h}`, want: `201`},
		step{do: "POST pods", body: podSpec("a", `, runtimeClassName: sandbox`), want: `201 {spec: {overhead: {cpu: 100m}, nodeSelector: {rt: "yes"}, tolerations: [{key: node.kubernetes.io/not-ready}, {key: node.kubernetes.io/unreachable}, {key: rt, operator: Exists}]}}`},
		step{do: "POST pods", body: podSpec("b", `, runtimeClassName: sandbox, overhead: {cpu: 0.1}`), want: `201`},
		step{do: "POST pods", body: podSpec("c", `, runtimeClassName: sandbox, overhead: {cpu: 1}`), want: `403 pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`},
		step{do: "POST pods", body: podSpec("c", `, runtimeClassName: plain, overhead: {cpu: 1}`), want: `403 pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`},
		step{do: "POST pods", body: podSpec("c", `, overhead: {cpu: 1}`), want: `403 pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`},
		step{do: "POST pods", body: podSpec("c", `, runtimeClassName: none`), want: `403 pod rejected: RuntimeClass "none" not found`},
		step{do: "POST pods", body: podSpec("c", `, runtimeClassName: sandbox, nodeSelector: {rt: "no"}`), want: `403 conflict: runtimeClass.scheduling.nodeSelector[rt] = yes; pod.spec.nodeSelector[rt] = no`},
		step{do: "POST pods", body: podSpec("d", `, runtimeClassName: plain, nodeSelector: {a: b}`), want: `201 {spec: {overhead: null, nodeSelector: {a: b}}}`},
	)
}
