package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
)

// TestDefaultTolerationSeconds checks that pods get tolerations for failed nodes unless they have their own.
func TestDefaultTolerationSeconds(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{Config: map[string]any{"DefaultTolerationSeconds": plugins.TolerationSeconds{NotReady: 10, Unreachable: 20}}}),
		step{do: "POST pods", body: podSpec("a", ``), want: `201 {spec: {tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 10}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 20}]}}`},
		step{do: "POST pods", body: podSpec("b", `, tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 5, effect: NoExecute}]`), want: `201 {spec: {tolerations: [{tolerationSeconds: 5}, {key: node.kubernetes.io/unreachable, tolerationSeconds: 20}]}}`},
		step{do: "POST pods", body: podSpec("c", `, tolerations: [{operator: Exists}]`), want: `201 {spec: {tolerations: [{operator: Exists}]}}`},
	)
}
