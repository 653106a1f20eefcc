package policy

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
)

// An empty selector of a budget selects nothing in version v1beta1, and all pods in v1.
// What the one version says with it the other says with a label that no pod has: all pods
// are without it, none has it.

// selectorOf returns a selector that tells whether pods have the label.
func selectorOf(p names.Profile, operator string) map[string]any {
	return map[string]any{"matchExpressions": []any{map[string]any{"key": p.Wire(names.EmptySelector), "operator": operator}}}
}

// convertEmptySelectors makes selectors of version v1beta1 those of the hub, and back.
func convertEmptySelectors(v *registry.KindVersion) {
	plain := v.Conversion
	v.Conversion = func(s *schema.Schema, p names.Profile) (*registry.Conversion, error) {
		c, err := plain(s, p)
		if err != nil {
			return nil, err
		}
		all, none := selectorOf(p, "DoesNotExist"), selectorOf(p, "Exists")
		c.ToHub = replaceSelectors(c.ToHub, none, all)
		c.FromHub = replaceSelectors(c.FromHub, all, none)
		return c, nil
	}
}

// replaceSelectors is convert, after which instead stands for the empty selector and the
// empty selector for empty.
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
