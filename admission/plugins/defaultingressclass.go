package plugins

import (
	"context"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
)

// defaultIngressClass gives a new ingress that names no class, in its field or its old
// annotation, the one that is marked as the default.
func defaultIngressClass() admission.Plugin {
	return admission.Plugin{
		Name:  "DefaultIngressClass",
		Rules: on(names.GroupNetworking, []string{"ingresses"}, admission.Create),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if _, old := r.Object.Annotations()[r.Server.Wire(names.IngressClass)]; old {
				return nil
			}
			newest := r.Server.Rules.Has(compat.NewestIngressClass)
			return fillClass(ctx, r, newest, "ingressClassName", names.GroupNetworking, "ingressclasses", names.DefaultIngressClass)
		},
	}
}
