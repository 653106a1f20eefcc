package convert

import (
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/suggest"
	"orch.io/controlplane/registry"
)

// warnOfVersion warns of an object whose kind is known, but not in its version.
func (c *conversion) warnOfVersion(obj *meta.Object, gvk meta.GroupVersionKind) {
	of := map[string]bool{}
	for known := range c.versions {
		if known.Group == gvk.Group && known.Kind == gvk.Kind {
			of[known.APIVersion()] = true
		}
	}
	if len(of) > 0 {
		c.warn(obj, fmt.Sprintf("it stays as it is: the kind has no %s%s", gvk.APIVersion(), suggest.Near(gvk.APIVersion(), slices.Sorted(maps.Keys(of))...)))
	}
}

// warnOfRefusal warns of what a server would not take of an object in a version. What no
// object has before a server gives it is no fault: a namespace, a name by a generated one, and what
// pools give.
func (c *conversion) warnOfRefusal(obj *meta.Object, v *resource.Version) {
	causes, err := refusal(c, obj.Clone(), v)
	if err != nil {
		c.warn(obj, err.Error())
	}
	for _, cause := range causes {
		c.warn(obj, cause.Field+": "+cause.Message)
	}
}

func (c *conversion) warn(obj *meta.Object, text string) {
	c.warnings = append(c.warnings, fmt.Sprintf("%s%s %q: %s", c.place, obj.Kind(), obj.Name(), text))
}

// refusal returns what is wrong with an object that is to be created in a version.
func refusal(c *conversion, obj *meta.Object, v *resource.Version) ([]meta.StatusCause, error) {
	if v.Namespaced && obj.Namespace() == "" {
		obj.SetNamespace("default")
	}
	if obj.Name() == "" && obj.GenerateName() != "" {
		obj.SetName(obj.GenerateName() + "x")
	}
	v.Normalize(obj)
	if err := fill(c.ctx, v, obj); err != nil {
		return nil, err
	}
	working := v.Working()
	obj, err := working.Convert(c.ctx, obj)
	if err != nil {
		return nil, err
	}
	write := v.NewChange(c.ctx, obj.Clone(), nil, "")
	if err := working.Defaults(write); err != nil {
		return nil, err
	}
	if err := working.PrepareForWrite(write); err != nil {
		return nil, err
	}
	if v.Pool != nil {
		if causes, err := v.Pool.Allocate(&registry.Allocation{Object: write.New, Free: func(string) bool { return true }}); err != nil || len(causes) > 0 {
			return causes, err
		}
	}
	causes, err := working.ValidateWrite(write)
	if err != nil {
		return nil, err
	}
	causes, _ = working.CheckRules(write, causes)
	return causes, nil
}
