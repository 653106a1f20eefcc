package definitions

import (
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objectcache"
)

// outline returns a definition without its schemas and annotations, which make up almost all of
// its size: kubectl apply stores the whole definition again in an annotation.
func outline(e *objectcache.Entry) *meta.Object {
	o := e.Without("schema")
	o.Delete("metadata", "managedFields")
	o.Delete("metadata", "annotations")
	return o
}

// define returns the type of a definition with its accepted names. It returns nil if the definition is not
// established or if its names belong to a registered kind, and the old type if nothing relevant has changed. Schemas
// are not read until they are needed.
func (c *Catalog) define(e *objectcache.Entry, crd *meta.Object, old definition) (*resource.Type, error) {
	if !crd.HasCondition("Established") {
		return nil, nil
	}
	origin := originOf(crd)
	accepted := crd.Map("status", "acceptedNames")
	if t := old.typ; t != nil && t.Origin == origin && t.Closed == crd.Terminating() && meta.Equal(accepted, old.outline.Map("status", "acceptedNames")) {
		return t, nil
	}
	if accepted == nil {
		accepted = map[string]any{} // do not fall back to the names in spec
	}
	failed := func(err error) {
		c.o.Log.Error("CustomResourceDefinition is broken", "name", e.Key().Name, "error", err)
	}
	read := func() *registry.Kind { return registry.FromDefinition(e.Object(), accepted) }
	t, err := resource.Define(registry.FromDefinition(crd, accepted), c.o.Names, c.o.Rules, read, failed)
	if err != nil {
		c.o.Log.Error("CustomResourceDefinition cannot be served", "name", crd.Name(), "error", err)
		return nil, err
	}
	if c.registered(t) {
		c.o.Log.Error("CustomResourceDefinition cannot be served", "name", crd.Name(), "error", "its names belong to a built-in kind")
		return nil, nil
	}
	t.Features = c.o.Features // without Enable, which would read the schemas: fields of definitions have no feature gates
	t.Origin, t.Closed = origin, crd.Terminating()
	t.Source = c.source(e.Key())
	c.o.Webhooks.Attach(t)
	return t, nil
}

// source returns a function that reads the schema of a version from the cached definition. The function returns nil
// if the definition has changed since the type was made.
func (c *Catalog) source(key meta.Key) func(*resource.Version) *schema.Schema {
	return func(v *resource.Version) *schema.Schema {
		e := c.cache.Get(key)
		if e == nil || originOf(e.Object()) != v.Origin {
			return nil
		}
		return resource.Source(registry.FromDefinition(withVersion(e.Object(), v.Name), nil), c.o.Names)(v)
	}
}

// withVersion returns a copy of a definition that has only one of its versions. Reading all
// versions to get the schema of each would take quadratic time.
func withVersion(crd *meta.Object, name string) *meta.Object {
	spec := maps.Clone(crd.Map("spec"))
	spec["versions"] = slices.DeleteFunc(slices.Clone(crd.List("spec", "versions")), func(v any) bool {
		m, _ := v.(map[string]any)
		return m["name"] != name
	})
	tree := maps.Clone(crd.Tree())
	tree["spec"] = spec
	return meta.NewObject(tree)
}

func originOf(crd *meta.Object) resource.Origin {
	return resource.Origin{UID: crd.UID(), Generation: crd.Generation()}
}

// registered reports whether a registered type, served or withheld, has the same resource or kind as t.
func (c *Catalog) registered(t *resource.Type) bool {
	now := c.types.Now()
	for _, other := range []*resource.Type{now.Type(t.GroupResource()), now.Kind(t.GroupKind())} {
		if other != nil && !other.Defined() {
			return true
		}
	}
	return slices.ContainsFunc(now.Withheld(), func(other *resource.Type) bool {
		return other.GroupResource() == t.GroupResource() || other.GroupKind() == t.GroupKind()
	})
}
