package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestLimitPodHardAntiAffinityTopology checks that required anti-affinity is allowed by hostname only.
func TestLimitPodHardAntiAffinityTopology(t *testing.T) {
	anti := func(key string) string {
		return `, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "` + key + `"}]}}`
	}
	runSteps(t, newServer(t, admission.Options{Enable: []string{"LimitPodHardAntiAffinityTopology"}}),
		step{do: "POST pods", body: podSpec("a", anti("kubernetes.io/hostname")), want: `201`},
		step{do: "POST pods", body: podSpec("b", anti("topology.kubernetes.io/zone")), want: `403 affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed`},
		step{do: "POST pods", body: podSpec("c", `, affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}`), want: `201`},
	)
}
