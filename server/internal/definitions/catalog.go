// Package definitions serves the types that CustomResourceDefinitions define.
//
// A Catalog holds the registered types of a server and the types of the established definitions in its store
// (catalog.go, define.go). The controller of the definitions accepts their names (names.go), and deletes the objects
// of a deleted definition before the definition itself is removed (removal.go).
package definitions

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/conversion"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
)

// Options configure a Catalog.
type Options struct {
	Names    names.Profile
	Rules    compat.Rules
	Features *features.Set
	Log      *slog.Logger
	Webhooks *conversion.Webhooks // for definitions with conversion webhooks
}

// Catalog is the set of types that a server serves. It is safe for concurrent use.
//
// Types compares the cache of definitions with the catalog, so a request that follows a change of a definition sees
// the changed type. Follow does the same after each commit, so that the watches of a changed type end, whichever
// server changed the definition.
type Catalog struct {
	o        Options
	resource meta.GroupResource // of the definitions
	types    resource.Catalog

	// Set by Open. Types and Follow do not read hub and cache before opened is true.
	hub    *objectcache.Set
	cache  *objectcache.Cache // of the definitions; nil if their kind is not registered
	opened atomic.Bool
	synced atomic.Int64 // cache.Changed() when types was last updated

	mu      sync.Mutex // guards defined, and serializes changes of types
	defined map[string]definition
}

// definition is the state of a CustomResourceDefinition.
type definition struct {
	revision storage.Revision
	typ      *resource.Type // its type; nil: not served
	err      error          // reason why an established definition cannot be served
	outline  *meta.Object   // the definition without its schemas, see outline; read-only
}

// New returns a Catalog without types.
func New(o Options) *Catalog {
	c := &Catalog{
		o: o, defined: map[string]definition{},
		resource: meta.GroupResource{Group: o.Names.Group(wellknown.GroupExtensions), Resource: "customresourcedefinitions"},
	}
	c.synced.Store(-1)
	return c
}

// Register adds the types of registered kinds. It must be called before Open.
func (c *Catalog) Register(types ...*resource.Type) {
	for _, t := range types {
		c.o.Webhooks.Attach(t)
	}
	c.types.Put(types...)
}

// Open adds the types of the definitions in the store, if the kind of definitions is registered, and follows their
// changes from then on.
func (c *Catalog) Open(hub *objectcache.Set) {
	c.hub = hub
	if c.types.Now().Type(c.resource) != nil {
		c.cache = hub.Cache(c.resource)
	}
	c.opened.Store(true)
	c.Types()
}

// Close closes the connections to conversion webhooks.
func (c *Catalog) Close() {
	for _, t := range c.types.Now().Types() {
		conversion.Detach(t)
	}
}

// Resource returns the resource of definitions, whether or not their kind is registered.
func (c *Catalog) Resource() meta.GroupResource { return c.resource }

// Extensible reports whether the kind of definitions is registered. It is valid after Open.
func (c *Catalog) Extensible() bool { return c.cache != nil }

// Types returns the types at the newest revision of the cache.
func (c *Catalog) Types() *resource.State {
	if c.opened.Load() && c.cache != nil && int64(c.cache.Changed()) != c.synced.Load() {
		c.sync()
	}
	return c.types.Now()
}

// Known returns the types as of the last call of Types or Follow. Unlike Types it takes no lock, so the store may
// call it.
func (c *Catalog) Known() *resource.State { return c.types.Now() }

// Follow updates the catalog after a commit. Before Open it does nothing.
func (c *Catalog) Follow() { c.Types() }

// sync updates the catalog to the definitions in the cache.
func (c *Catalog) sync() {
	c.mu.Lock()
	defer c.mu.Unlock()
	upTo := c.cache.Changed()
	if int64(upTo) == c.synced.Load() {
		return
	}
	entries := c.cache.List(objectcache.Query{}, "", 0).Entries
	present := make(map[string]bool, len(entries))
	var put, removed []*resource.Type
	var changed []*resource.Type // the types in put that change their objects
	for _, e := range entries {
		name := e.Key().Name
		present[name] = true
		old := c.defined[name]
		if old.revision == e.Revision() {
			continue
		}
		next := definition{revision: e.Revision(), outline: outline(e)}
		next.typ, next.err = c.define(e, next.outline, old)
		c.defined[name] = next
		if next.typ == old.typ {
			continue
		}
		if old.typ != nil {
			conversion.Detach(old.typ)
		}
		if next.typ == nil {
			removed = append(removed, old.typ)
			continue
		}
		put = append(put, next.typ)
		if old.typ == nil || old.typ.Origin != next.typ.Origin {
			changed = append(changed, next.typ)
		}
	}
	for name, old := range c.defined {
		if present[name] {
			continue
		}
		delete(c.defined, name)
		if old.typ != nil {
			removed = append(removed, old.typ)
			conversion.Detach(old.typ)
		}
	}
	c.replace(put, removed, changed)
	c.synced.Store(int64(upTo))
}

// replace changes the served types. Watches of removed and changed types end, because their next events would have
// another schema. The caller holds mu.
func (c *Catalog) replace(put, removed, changed []*resource.Type) {
	for _, t := range removed {
		c.types.Remove(t.GroupResource())
	}
	if len(put) > 0 {
		c.types.Put(put...)
	}
	for _, t := range slices.Concat(removed, changed) {
		c.hub.Drop(t.GroupResource())
	}
	for _, t := range put {
		objects.Index(c.hub, t)
	}
}

// definitionOf returns the definition with a name at the newest revision of the cache, or the zero definition if
// there is none.
func (c *Catalog) definitionOf(name string) definition {
	c.Types()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.defined[name]
}

// outlines returns the outlines of the definitions for which match returns true.
func (c *Catalog) outlines(match func(outline *meta.Object) bool) (list []*meta.Object) {
	c.Types()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.defined {
		if match(d.outline) {
			list = append(list, d.outline)
		}
	}
	return list
}
