package plugins

import (
	"context"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// extendedResourceToleration adds tolerations to pods that request an extended resource, such as a GPU, for
// nodes that are tainted with the name of the resource.
func extendedResourceToleration() admission.Plugin {
	return admission.Plugin{
		Name: "ExtendedResourceToleration", Default: admission.Off,
		Rules: on("", []string{"pods"}, admission.Create, admission.Update),
		Mutate: func(_ context.Context, r *admission.Request) error {
			spec, asked := meta.NewObject(r.Object.Map("spec")), map[string]bool{}
			own := r.Server.Wire(wellknown.NativeResource)
			for _, c := range podspec.Of(spec, podspec.Containers, podspec.Init) {
				for name := range podspec.Resources(c, "requests") {
					if strings.Contains(name, "/") && !strings.Contains(name, own) {
						asked[name] = true
					}
				}
			}
			for _, have := range spec.Objects("tolerations") {
				if have.String("operator") == "Exists" && have.String("effect") == "NoSchedule" {
					delete(asked, have.String("key"))
				}
			}
			list := spec.List("tolerations")
			for _, name := range slices.Sorted(maps.Keys(asked)) {
				list = append(list, map[string]any{"key": name, "operator": "Exists", "effect": "NoSchedule"})
			}
			if len(asked) > 0 {
				spec.Set(list, "tolerations")
			}
			return nil
		},
	}
}
