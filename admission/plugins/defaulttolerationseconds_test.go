package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
)

// TestDefaultTolerationSeconds: pods that say nothing of a failed node stay there for a while.
func TestDefaultTolerationSeconds(t *testing.T) {
	walk(t, with(t, admission.Options{Config: map[string]any{"DefaultTolerationSeconds": plugins.TolerationSeconds{NotReady: 10, Unreachable: 20}}}),
		step{do: "POST pods", body: podSpec("a", ``), want: `201 {spec: {tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 10}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 20}]}}`},
		step{do: "POST pods", body: podSpec("b", `, tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 5, effect: NoExecute}]`), want: `201 {spec: {tolerations: [{tolerationSeconds: 5}, {key: node.kubernetes.io/unreachable, tolerationSeconds: 20}]}}`},
		step{do: "POST pods", body: podSpec("c", `, tolerations: [{operator: Exists}]`), want: `201 {spec: {tolerations: [{operator: Exists}]}}`},
	)
}
