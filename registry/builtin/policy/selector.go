package policy

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// An empty selector of a budget selects nothing in v1beta1 and all pods in v1. The conversion expresses
// the meaning in the other version by a requirement on a label that no pod has.

// selectorOf returns a selector with the operator Exists or DoesNotExist for that label.
func selectorOf(p names.Profile, operator string) map[string]any {
	return map[string]any{"matchExpressions": []any{map[string]any{"key": p.Wire(wellknown.EmptySelector), "operator": operator}}}
}

// convertEmptySelectors extends the conversions of v1beta1. It works on the compiled conversion,
// because the name of the label depends on the naming of the server.
func convertEmptySelectors(v *registry.KindVersion) {
	base := v.Conversion
	v.Conversion = func(s *schema.Schema, p names.Profile) (*registry.Conversion, error) {
		c, err := base(s, p)
		if err != nil {
			return nil, err
		}
		all, none := selectorOf(p, "DoesNotExist"), selectorOf(p, "Exists")
		c.ToHub = replaceSelectors(c.ToHub, none, all)
		c.FromHub = replaceSelectors(c.FromHub, all, none)
		return c, nil
	}
}

// replaceSelectors wraps convert: it replaces an empty selector by instead, and the selector empty by
// an empty selector.
func replaceSelectors(convert func(map[string]any) (map[string]any, error), instead, empty map[string]any) func(map[string]any) (map[string]any, error) {
	return func(tree map[string]any) (map[string]any, error) {
		out, err := convert(tree)
		if err != nil {
			return nil, err
		}
		obj := meta.NewObject(out)
		s, set := obj.Get("spec", "selector")
		m, ok := s.(map[string]any)
		switch {
		case !set || !ok:
		case len(m) == 0:
			obj.Set(meta.Clone(instead), "spec", "selector")
		case meta.Equal(m, empty):
			obj.Set(map[string]any{}, "spec", "selector")
		}
		return out, nil
	}
}
