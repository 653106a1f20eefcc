package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
)

// TestPodTolerationRestriction checks that pods get the default tolerations of their namespace, and that
// others than those on its whitelist are refused.
func TestPodTolerationRestriction(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{Enable: []string{"PodTolerationRestriction"}, Disable: []string{"DefaultTolerationSeconds"}}),
		step{do: "POST pods", body: podSpec("a", `, tolerations: [{key: x, operator: Exists}]`), want: `201 {spec: {tolerations: [{key: x}]}}`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: team, annotations: {scheduler.alpha.kubernetes.io/defaultTolerations: '[{"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]',
			scheduler.alpha.kubernetes.io/tolerationsWhitelist: '[{"key": "team", "operator": "Exists"}, {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}]'}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/team/pods", body: podSpec("a", ``), want: `201 {spec: {tolerations: [{key: team, operator: Equal, value: a, effect: NoSchedule}]}}`},
		step{do: "POST /api/v1/namespaces/team/pods", body: podSpec("b", `, tolerations: [{key: team, value: b, effect: NoSchedule}]`), want: `201 {spec: {tolerations: [{value: b}, {value: a}]}}`},
		step{do: "POST /api/v1/namespaces/team/pods", body: podSpec("c", `, tolerations: [{key: other, operator: Exists}]`), want: `403 pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist`},
		step{do: "POST /api/v1/namespaces/team/pods", body: `{metadata: {name: d}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}`, want: `201 {spec: {tolerations: [{key: team}, {key: node.kubernetes.io/memory-pressure, operator: Exists, effect: NoSchedule}]}}`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: wrong, annotations: {scheduler.alpha.kubernetes.io/defaultTolerations: '{'}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/wrong/pods", body: podSpec("a", ``), want: `403 annotation scheduler.alpha.kubernetes.io/defaultTolerations of namespace wrong: unexpected EOF`},
		step{do: "PATCH /api/v1/namespaces/wrong", body: `{metadata: {annotations: {scheduler.alpha.kubernetes.io/defaultTolerations: '["a"]'}}}`, want: `200`},
		step{do: "POST /api/v1/namespaces/wrong/pods", body: podSpec("a", ``), want: `403 annotation scheduler.alpha.kubernetes.io/defaultTolerations of namespace wrong: not a list of tolerations`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: brief, annotations: {scheduler.alpha.kubernetes.io/defaultTolerations: '[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}]'}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/brief/pods", body: podSpec("a", ``), want: `201 {spec: {tolerations: [{key: a, tolerationSeconds: 9}]}}`},
		step{do: "POST /api/v1/namespaces/brief/pods", body: podSpec("b", `, tolerations: [{key: a, value: x, effect: NoExecute, tolerationSeconds: 5}]`), want: `201 {spec: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 9}]}}`},
		step{do: "POST /api/v1/namespaces/brief/pods", body: podSpec("c", `, tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 10}]`), want: `201 {spec: {tolerations: [{key: a, tolerationSeconds: 10}]}}`},
	)
}

// TestPodTolerationRestrictionConfig checks that the configuration applies to namespaces without the
// annotations, and that an empty annotation is an empty list.
func TestPodTolerationRestrictionConfig(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{Enable: []string{"PodTolerationRestriction"}, Disable: []string{"DefaultTolerationSeconds"}, Config: map[string]any{
		"PodTolerationRestriction": plugins.Tolerations{
			Default:   []map[string]any{{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": float64(9)}},
			Whitelist: []map[string]any{{"key": "a", "operator": "Exists"}},
		},
	}}),
		step{do: "POST pods", body: podSpec("a", ``), want: `201 {spec: {tolerations: [{key: a, tolerationSeconds: 9}]}}`},
		step{do: "POST pods", body: podSpec("b", `, tolerations: [{key: x, operator: Exists}]`), want: `403 conflict with its namespace whitelist`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: free, annotations: {scheduler.alpha.kubernetes.io/defaultTolerations: "", scheduler.alpha.kubernetes.io/tolerationsWhitelist: ""}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/free/pods", body: podSpec("a", `, tolerations: [{key: x, operator: Exists}]`), want: `201 {spec: {tolerations: [{key: x}]}}`},
	)
}
