package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestLimitPodHardAntiAffinityTopology: pods that must stay apart do so by node.
func TestLimitPodHardAntiAffinityTopology(t *testing.T) {
	pod := func(name, spec string) string {
		return `{metadata: {name: ` + name + `}, spec: {containers: [{name: c, image: i}]` + spec + `}}`
	}
	anti := func(key string) string {
		return `, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "` + key + `"}]}}`
	}
	walk(t, with(t, admission.Options{Enable: []string{"LimitPodHardAntiAffinityTopology"}}),
		step{do: "POST pods", body: pod("a", anti("kubernetes.io/hostname")), want: `201`},
		step{do: "POST pods", body: pod("b", anti("topology.kubernetes.io/zone")), want: `403 affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed`},
		step{do: "POST pods", body: pod("c", `, affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}`), want: `201`},
	)
}
