package plugins

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// runtimeClass sets the overhead, node selector and tolerations of new pods from their RuntimeClass.
func runtimeClass() admission.Plugin {
	return admission.Plugin{
		Name:  "RuntimeClass",
		Rules: on("", []string{"pods"}, admission.Create),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			class, err := runtimeClassOf(ctx, r)
			if err != nil || class == nil {
				return err
			}
			spec := meta.NewObject(r.Object.Map("spec"))
			if costs := class.Map("overhead", "podFixed"); len(costs) > 0 {
				switch overhead := spec.Map("overhead"); {
				case overhead != nil && r.Pass == 0 && !r.Server.Rules.Has(compat.EqualOverhead):
					return errors.New("pod rejected: the Pod sets its Overhead, which its RuntimeClass defines")
				case overhead != nil && !sameAmounts(overhead, costs):
					return errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
				}
				spec.Set(meta.Clone(costs), "overhead")
			}
			for key, v := range class.Map("scheduling", "nodeSelector") {
				if value, set := spec.Get("nodeSelector", key); set && value != v {
					return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, v, key, value)
				}
				spec.Set(v, "nodeSelector", key)
			}
			if tolerations := class.Objects("scheduling", "tolerations"); len(tolerations) > 0 {
				podspec.MergeTolerations(spec, tolerations...)
			}
			return nil
		},
		Validate: func(ctx context.Context, r *admission.Request) error {
			class, err := runtimeClassOf(ctx, r)
			if err != nil {
				return err
			}
			overhead, costs := r.Object.Map("spec", "overhead"), class.Map("overhead", "podFixed")
			switch {
			case overhead == nil:
			case len(costs) == 0:
				return errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
			case !sameAmounts(overhead, costs):
				return errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
			}
			return nil
		},
	}
}

// runtimeClassOf returns the RuntimeClass of a pod. It returns nil if the pod has no runtimeClassName or the server does
// not serve the kind.
func runtimeClassOf(ctx context.Context, r *admission.Request) (*meta.Object, error) {
	name := r.Object.String("spec", "runtimeClassName")
	if name == "" || !r.Server.Serves(wellknown.GroupNode, "runtimeclasses") {
		return nil, nil
	}
	class, err := r.Server.Find(ctx, wellknown.GroupNode, "runtimeclasses", meta.Key{Name: name})
	if err == nil && class == nil {
		err = fmt.Errorf("pod rejected: RuntimeClass %q not found", name)
	}
	return class, err
}

func sameAmounts(a, b map[string]any) bool {
	x, y := podspec.AmountsOf(a), podspec.AmountsOf(b)
	return maps.EqualFunc(x, y, meta.Quantity.Equal)
}
