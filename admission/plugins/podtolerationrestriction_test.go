package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestPodTolerationRestriction: pods get the tolerations of their namespace, and have none but those of its list.
func TestPodTolerationRestriction(t *testing.T) {
	walk(t, with(t, admission.Options{Enable: []string{"PodTolerationRestriction"}, Disable: []string{"DefaultTolerationSeconds"}}),
		step{do: "POST pods", body: podSpec("a", `, tolerations: [{key: x, operator: Exists}]`), want: `201 {spec: {tolerations: [{key: x}]}}`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: team, annotations: {scheduler.alpha.kubernetes.io/defaultTolerations: '[{"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]',
			scheduler.alpha.kubernetes.io/tolerationsWhitelist: '[{"key": "team", "operator": "Exists"}, {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}]'}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/team/pods", body: podSpec("a", ``), want: `201 {spec: {tolerations: [{key: team, operator: Equal, value: a, effect: NoSchedule}]}}`},
		step{do: "POST /api/v1/namespaces/team/pods", body: podSpec("b", `, tolerations: [{key: team, value: b, effect: NoSchedule}]`), want: `201 {spec: {tolerations: [{value: b}, {value: a}]}}`},
		step{do: "POST /api/v1/namespaces/team/pods", body: podSpec("c", `, tolerations: [{key: other, operator: Exists}]`), want: `403 pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist`},
		step{do: "POST /api/v1/namespaces/team/pods", body: `{metadata: {name: d}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}`, want: `201 {spec: {tolerations: [{key: team}, {key: node.kubernetes.io/memory-pressure, operator: Exists, effect: NoSchedule}]}}`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: wrong, annotations: {scheduler.alpha.kubernetes.io/defaultTolerations: '{'}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/wrong/pods", body: podSpec("a", ``), want: `403 annotation scheduler.alpha.kubernetes.io/defaultTolerations of namespace wrong: unexpected end of JSON input`},
	)
}
