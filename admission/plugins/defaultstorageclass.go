package plugins

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
)

// defaultStorageClass sets the default class on a new claim that names no class. An empty storageClassName
// counts as set: the claim wants no class.
func defaultStorageClass() admission.Plugin {
	return admission.Plugin{
		Name:  "DefaultStorageClass",
		Rules: on("", []string{"persistentvolumeclaims"}, admission.Create),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if _, old := r.Object.Annotations()[r.Server.Wire(wellknown.StorageClassBeta)]; old {
				return nil
			}
			newest := r.Server.Rules.Has(compat.NewestStorageClass)
			return fillClass(ctx, r, newest, "storageClassName", wellknown.GroupStorage, "storageclasses", wellknown.DefaultStorageClass, wellknown.DefaultStorageClassBeta)
		},
	}
}

// fillClass sets an unset spec field to the name of the default class, which is a class with an annotation of marks.
// If there are several default classes and newest is set, it takes the class with the newest creationTimestamp, and
// the first by name if several have the same. If newest is not set, several default classes are an error.
func fillClass(ctx context.Context, r *admission.Request, newest bool, field, group, plural string, marks ...string) error {
	if _, set := r.Object.Get("spec", field); set {
		return nil
	}
	classes, err := r.Server.List(ctx, group, plural, "")
	if err != nil {
		return err
	}
	var defaults []*meta.Object
	for _, class := range classes {
		if slices.ContainsFunc(marks, func(mark string) bool { return class.Annotation(r.Server.Wire(mark)) == "true" }) {
			defaults = append(defaults, class)
		}
	}
	slices.SortFunc(defaults, func(a, b *meta.Object) int {
		return cmp.Or(b.CreationTimestamp().Compare(a.CreationTimestamp()), strings.Compare(a.Name(), b.Name()))
	})
	switch {
	case len(defaults) == 0:
	case len(defaults) == 1 || newest:
		r.Object.Set(defaults[0].Name(), "spec", field)
	default:
		var found []string
		for _, class := range defaults {
			found = append(found, class.Name())
		}
		return fmt.Errorf("%d default %s found, only one is allowed: %s", len(defaults), plural, strings.Join(slices.Sorted(slices.Values(found)), ", "))
	}
	return nil
}
