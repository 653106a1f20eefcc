package resource

import (
	"slices"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
)

// Source returns what Type.Source is for a kind that a definition describes.
func Source(k *registry.Kind, p names.Profile) func(*Version) *schema.Schema {
	return func(v *Version) *schema.Schema {
		i := slices.IndexFunc(k.Versions, func(kv registry.KindVersion) bool { return kv.Name == v.Name })
		if i < 0 || k.Versions[i].Schema == nil {
			return nil
		}
		s, err := k.Versions[i].Schema(p)
		if err != nil {
			return nil // it was read before, so that this is another definition by now
		}
		return s
	}
}

// Documented returns the schema with all that people read of it. It is made for the caller,
// who should not keep it.
func (v *Version) Documented() *schema.Schema {
	if v.Source != nil {
		if s := v.Source(v); s != nil {
			return s
		}
	}
	return v.Schema
}

// lean makes the schemas of the versions what a server keeps of them.
func (t *Type) lean() {
	whole := make([]*schema.Schema, len(t.Versions))
	for i, v := range t.Versions {
		whole[i] = v.Schema
	}
	for i, s := range schema.Lean(whole...) {
		t.Versions[i].Schema = s
	}
}
