package plugins

import (
	"context"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
)

// defaultIngressClass gives a new ingress that names no class, in its field or its old
// annotation, the one that is marked as the default.
func defaultIngressClass() admission.Plugin {
	return admission.Plugin{
		Name:  "DefaultIngressClass",
		Rules: on(names.GroupNetworking, []string{"ingresses"}, admission.Create),
		Setup: func(p *admission.Plugin, env admission.Env) error {
			annotation := env.Names.Wire(names.IngressClass)
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				if _, old := r.Object.Annotations()[annotation]; old {
					return nil
				}
				return fillClass(ctx, env, r, names.GroupNetworking, "ingressclasses", names.DefaultIngressClass, "ingressClassName")
			}
			return nil
		},
	}
}
