package plugins

import (
	"context"
	"fmt"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/internal/wellknown"
)

// limitPodHardAntiAffinityTopology allows required pod anti-affinity for the topology of a node only, so that
// a pod cannot keep others off a whole zone.
func limitPodHardAntiAffinityTopology() admission.Plugin {
	return admission.Plugin{
		Name: "LimitPodHardAntiAffinityTopology", Default: admission.Off,
		Rules: on("", []string{"pods"}, admission.Create, admission.Update),
		Validate: func(_ context.Context, r *admission.Request) error {
			node := r.Server.Wire(wellknown.LabelHostname)
			for _, term := range r.Object.Objects("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution") {
				if key := term.String("topologyKey"); key != node {
					return fmt.Errorf("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %s but only key %s is allowed", key, node)
				}
			}
			return nil
		},
	}
}
