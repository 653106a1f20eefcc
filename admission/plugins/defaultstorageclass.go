package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
)

// defaultStorageClass gives a new claim that names no class the one that is marked as
// the default. An empty name is one: no class at all.
func defaultStorageClass() admission.Plugin {
	return admission.Plugin{
		Name:  "DefaultStorageClass",
		Rules: on("", []string{"persistentvolumeclaims"}, admission.Create),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if _, old := r.Object.Annotations()[r.Server.Wire(names.StorageClassBeta)]; old {
				return nil
			}
			return fillClass(ctx, r, "storageClassName", names.GroupStorage, "storageclasses", names.DefaultStorageClass, names.DefaultStorageClassBeta)
		},
	}
}

// fillClass sets a field of the spec that is not set to the name of the one class that one
// of the annotations marks as the default. Several are an error.
func fillClass(ctx context.Context, r *admission.Request, field, group, plural string, marks ...string) error {
	if _, set := r.Object.Get("spec", field); set {
		return nil
	}
	classes, err := r.Server.List(ctx, group, plural, "")
	if err != nil {
		return err
	}
	var defaults []string
	for _, class := range classes {
		if slices.ContainsFunc(marks, func(mark string) bool { return class.Annotation(r.Server.Wire(mark)) == "true" }) {
			defaults = append(defaults, class.Name())
		}
	}
	switch len(defaults) {
	case 0:
	case 1:
		r.Object.Set(defaults[0], "spec", field)
	default:
		return fmt.Errorf("%d default %s were found, where one can be: %s", len(defaults), plural, strings.Join(defaults, ", "))
	}
	return nil
}
