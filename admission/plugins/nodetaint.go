package plugins

import (
	"context"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// taintNodes taints new nodes as not ready; a controller removes the taint when the node is ready.
func taintNodes() admission.Plugin {
	return admission.Plugin{
		Name:  "TaintNodesByCondition",
		Rules: on("", []string{"nodes"}, admission.Create),
		Mutate: func(_ context.Context, r *admission.Request) error {
			key := r.Server.Wire(wellknown.TaintNotReady)
			tainted := slices.ContainsFunc(r.Object.Objects("spec", "taints"), func(taint *meta.Object) bool {
				return taint.String("key") == key && taint.String("effect") == "NoSchedule"
			})
			if !tainted {
				taint := map[string]any{"key": key, "effect": "NoSchedule"}
				r.Object.Set(append(r.Object.List("spec", "taints"), taint), "spec", "taints")
			}
			return nil
		},
	}
}
