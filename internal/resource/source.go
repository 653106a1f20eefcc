package resource

import (
	"errors"
	"slices"
	"sync"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
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
	return v.Schema()
}

// Schema returns the schema, nil: any object. That of a definition is read when it is first
// asked for: most kinds that are defined are never written.
func (v *Version) Schema() *schema.Schema {
	if v.schemas != nil {
		return v.schemas()[v.at]
	}
	return v.schema
}

// Define is Compile for the kind of a definition that was checked when it was written, on a server
// with these rules. Its
// schemas are read when they are first asked for, from the kind that read makes then, which
// is k with its schemas. If they have faults, failed is told of them, and no object of the
// type can be written.
func Define(k *registry.Kind, p names.Profile, rules compat.Rules, read func() *registry.Kind, failed func(error)) (*Type, error) {
	return (&compiler{kind: k, names: p, rules: rules, schemas: sync.OnceValue(func() []*schema.Schema {
		c := &compiler{kind: read(), names: p}
		list := c.schemasLike(k)
		if len(c.faults) > 0 {
			failed(errors.Join(c.faults...))
			return slices.Repeat([]*schema.Schema{nothing()}, len(k.Versions))
		}
		return schema.Compact(list...)
	})}).compile()
}

// schemasLike returns the schemas of the versions, which have to be those of k.
func (c *compiler) schemasLike(k *registry.Kind) []*schema.Schema {
	if c.kind.Err() != nil {
		c.fault("%w", c.kind.Err())
	}
	if !slices.EqualFunc(c.kind.Versions, k.Versions, func(a, b registry.KindVersion) bool { return a.Name == b.Name }) {
		c.fault("it has other versions than it had")
		return nil
	}
	list := make([]*schema.Schema, len(k.Versions))
	for i, kv := range c.kind.Versions {
		list[i] = c.schema(kv)
	}
	return list
}

// nothing is the schema of an object that cannot be written.
func nothing() *schema.Schema {
	s := &schema.Schema{Type: schema.Object, Preserve: true, Rules: []schema.Rule{{Expression: "false", Message: "the definition of the kind is broken"}}}
	_ = s.Compile() // there is nothing in it that could fail
	return s
}

// lean makes the schemas of the versions what a server keeps of them.
func (t *Type) lean() {
	whole := make([]*schema.Schema, len(t.Versions))
	for i, v := range t.Versions {
		whole[i] = v.schema
	}
	for i, s := range schema.Compact(whole...) {
		t.Versions[i].schema = s
	}
}
