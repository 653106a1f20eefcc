package plugins

import (
	"context"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
)

// defaultIngressClass sets the default class on a new ingress that names no class, neither in its field nor
// in the old annotation.
func defaultIngressClass() admission.Plugin {
	return admission.Plugin{
		Name:  "DefaultIngressClass",
		Rules: on(wellknown.GroupNetworking, []string{"ingresses"}, admission.Create),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if _, old := r.Object.Annotations()[r.Server.Wire(wellknown.IngressClass)]; old {
				return nil
			}
			newest := r.Server.Rules.Has(compat.NewestIngressClass)
			return fillClass(ctx, r, newest, "ingressClassName", wellknown.GroupNetworking, "ingressclasses", wellknown.DefaultIngressClass)
		},
	}
}
