package plugins

import (
	"context"
	"fmt"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// defaultStorageClass gives a new claim that names no class the one that is marked as
// the default. An empty name is one: no class at all.
func defaultStorageClass() admission.Plugin {
	return admission.Plugin{
		Name:  "DefaultStorageClass",
		Rules: on("", []string{"persistentvolumeclaims"}, admission.Create),
		Setup: func(p *admission.Plugin, env admission.Env) error {
			beta := env.Names.Wire(names.StorageClassBeta)
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				if _, old := r.Object.Annotations()[beta]; old {
					return nil
				}
				return fillClass(ctx, env, r, names.GroupStorage, "storageclasses", names.DefaultStorageClass, "storageClassName")
			}
			return nil
		},
	}
}

// fillClass sets a field of the spec that is not set to the name of the one object of a
// resource whose annotation mark says that it is the default. Several are an error.
func fillClass(ctx context.Context, env admission.Env, r *admission.Request, group, resource, mark, field string) error {
	if _, set := r.Object.Get("spec", field); set {
		return nil
	}
	classes := meta.GroupResource{Group: env.Names.Group(group), Resource: resource}
	t := env.Type(classes)
	if t == nil {
		return nil
	}
	all, err := env.Client.List(ctx, classes, "")
	if err != nil {
		return err
	}
	mark = env.Names.Wire(mark)
	var defaults []string
	for _, class := range all {
		if class.Annotations()[mark] == "true" {
			defaults = append(defaults, class.Name())
		}
	}
	switch len(defaults) {
	case 0:
	case 1:
		r.Object.Set(defaults[0], "spec", field)
	default:
		return fmt.Errorf("%d default %s were found, where one can be: %s", len(defaults), resource, strings.Join(defaults, ", "))
	}
	return nil
}
