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

// Source returns the Type.Source of a custom kind.
func Source(k *registry.Kind, p names.Profile) func(*Version) *schema.Schema {
	return func(v *Version) *schema.Schema {
		i := slices.IndexFunc(k.Versions, func(kv registry.KindVersion) bool { return kv.Name == v.Name })
		if i < 0 || k.Versions[i].Schema == nil {
			return nil
		}
		s, err := k.Versions[i].Schema(p)
		if err != nil {
			return nil // the definition changed since the type was compiled
		}
		return s
	}
}

// Documented returns the schema including documentation. It is built for each call, so the caller
// should not retain it.
func (v *Version) Documented() *schema.Schema {
	if v.Source != nil {
		if s := v.Source(v); s != nil {
			return s
		}
	}
	return v.Schema()
}

// Schema returns the schema; nil accepts any object. The schema of a CustomResourceDefinition is
// read on first use, because most custom kinds are never written. The caller must not modify it.
func (v *Version) Schema() *schema.Schema {
	if v.schemas != nil {
		return v.schemas()[v.at]
	}
	return v.schema
}

// Define compiles the kind of a CustomResourceDefinition that was validated when it was written. k
// need not contain schemas: Version.Schema calls read on first use, which must return k with its
// schemas. If the schemas are invalid, the type calls failed with the errors and rejects all
// writes. read and failed are called at most once, in the goroutine of some request.
func Define(k *registry.Kind, p names.Profile, rules compat.Rules, read func() *registry.Kind, failed func(error)) (*Type, error) {
	return (&compiler{kind: k, names: p, rules: rules, schemas: sync.OnceValue(func() []*schema.Schema {
		c := &compiler{kind: read(), names: p}
		list := c.schemasLike(k)
		if len(c.errs) > 0 {
			failed(errors.Join(c.errs...))
			return slices.Repeat([]*schema.Schema{rejectAll()}, len(k.Versions))
		}
		return schema.Compact(list...)
	})}).compile()
}

// schemasLike returns the schemas of the versions. It reports an error if they are not the versions
// of k.
func (c *compiler) schemasLike(k *registry.Kind) []*schema.Schema {
	if c.kind.Err() != nil {
		c.errorf("%w", c.kind.Err())
	}
	if !slices.EqualFunc(c.kind.Versions, k.Versions, func(a, b registry.KindVersion) bool { return a.Name == b.Name }) {
		c.errorf("the versions of the definition have changed")
		return nil
	}
	list := make([]*schema.Schema, len(k.Versions))
	for i, kv := range c.kind.Versions {
		list[i] = c.schema(kv)
	}
	return list
}

// rejectAll returns a schema that rejects every object.
func rejectAll() *schema.Schema {
	s := &schema.Schema{Type: schema.Object, Preserve: true, Rules: []schema.Rule{{Expression: "false", Message: "the definition of this kind is invalid"}}}
	_ = s.Compile() // cannot fail: the schema has no patterns or defaults
	return s
}

// compactSchemas replaces the schemas of the versions by compact copies, without documentation.
func (t *Type) compactSchemas() {
	whole := make([]*schema.Schema, len(t.Versions))
	for i, v := range t.Versions {
		whole[i] = v.schema
	}
	for i, s := range schema.Compact(whole...) {
		t.Versions[i].schema = s
	}
}
