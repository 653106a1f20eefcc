package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
)

// TestPodNodeSelector checks that pods get the node selector of their namespace, and that conflicting
// selectors are refused.
func TestPodNodeSelector(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{
		Enable: []string{"PodNodeSelector"},
		Config: map[string]any{"PodNodeSelector": plugins.NodeSelectors{Selectors: map[string]string{"clusterDefaultNodeSelector": "zone=a", "narrow": "zone=a,disk=ssd"}}},
	}),
		step{do: "POST pods", body: podSpec("a", ``), want: `201 {spec: {nodeSelector: {zone: a}}}`},
		step{do: "POST pods", body: podSpec("b", `, nodeSelector: {zone: b}`), want: `403 pod node label selector conflicts with its namespace node label selector`},
		step{do: "POST pods", body: podSpec("c", `, nodeSelector: {x: z}`), want: `201 {spec: {nodeSelector: {zone: a, x: z}}}`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: own, annotations: {scheduler.alpha.kubernetes.io/node-selector: "env=test, disk=ssd"}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/own/pods", body: podSpec("a", `, nodeSelector: {env: test}`), want: `201 {spec: {nodeSelector: {env: test, disk: ssd}}}`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: any, annotations: {scheduler.alpha.kubernetes.io/node-selector: ""}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/any/pods", body: podSpec("a", ``), want: `201 {spec: {nodeSelector: null}}`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: wrong, annotations: {scheduler.alpha.kubernetes.io/node-selector: "="}}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/wrong/pods", body: podSpec("a", ``), want: `403 invalid selector: "="`},
		step{do: "PATCH /api/v1/namespaces/wrong", body: `{metadata: {annotations: {scheduler.alpha.kubernetes.io/node-selector: "a=b,"}}}`, want: `200`},
		step{do: "POST /api/v1/namespaces/wrong/pods", body: podSpec("a", ``), want: `403 invalid selector: "a=b,"`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: narrow}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/narrow/pods", body: podSpec("a", `, nodeSelector: {disk: ssd}`), want: `201 {spec: {nodeSelector: {zone: a, disk: ssd}}}`},
		step{do: "POST /api/v1/namespaces/narrow/pods", body: podSpec("b", `, nodeSelector: {disk: hdd}`), want: `403 pod node label selector labels conflict with its namespace whitelist`},
	)
}
