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

// warnUnknownVersion adds a warning if the kind of an object exists, but not in the version of the
// object.
func (c *conversion) warnUnknownVersion(obj *meta.Object, gvk meta.GroupVersionKind) {
	of := map[string]bool{}
	for known := range c.versions {
		if known.Group == gvk.Group && known.Kind == gvk.Kind {
			of[known.APIVersion()] = true
		}
	}
	if len(of) > 0 {
		c.warn(obj, fmt.Sprintf("not converted: the kind has no version %s%s", gvk.APIVersion(), suggest.Near(gvk.APIVersion(), slices.Sorted(maps.Keys(of))...)))
	}
}

// warnRejection adds warnings for the reasons why a server would reject obj in version v. Values
// that the server sets in each object are not missed: the namespace, a generated name, and values
// from pools.
func (c *conversion) warnRejection(obj *meta.Object, v *resource.Version) {
	causes, err := rejection(c, obj.Clone(), v)
	if err != nil {
		c.warn(obj, err.Error())
	}
	for _, cause := range causes {
		c.warn(obj, cause.Field+": "+cause.Message)
	}
}

// warn adds a warning about an object.
func (c *conversion) warn(obj *meta.Object, text string) {
	c.warnings = append(c.warnings, fmt.Sprintf("%s%s %q: %s", c.place, obj.Kind(), obj.Name(), text))
}

// rejection returns the violations of an object that is to be created in version v.
func rejection(c *conversion, obj *meta.Object, v *resource.Version) ([]meta.StatusCause, error) {
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
