package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/conversion"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
)

// definitions keeps the catalog in step with the CustomResourceDefinition
// objects: what is established is served. The cache of the definitions is
// compared with the catalog whenever somebody asks for types, so a request that
// follows a definition's change finds the type changed, and after every commit, so that
// watches end where the definition changed that they show objects by, whichever server
// over the store changed it.
type definitions struct {
	resource meta.GroupResource
	cache    *objectcache.Cache // nil: the server has no such kind
	synced   atomic.Int64       // the revision of the cache that the catalog shows
	open     atomic.Bool        // the rest is set

	mu     sync.Mutex // guards served, and the order of changes of the catalog
	served map[string]defined
}

// defined is what the server made of a definition.
type defined struct {
	revision storage.Revision
	typ      *resource.Type // nil: it is not served
	broken   error          // why an established one cannot be served
	outline  *meta.Object   // see outline; shared
}

// outline reads a definition without its schemas and what is said of it in metadata, which
// are all but all of it: who applies a definition may leave the whole of it in an annotation.
func outline(e *objectcache.Entry) *meta.Object {
	o := e.Without("schema")
	o.Delete("metadata", "managedFields")
	o.Delete("metadata", "annotations")
	return o
}

// openDefinitions begins to serve what the store has definitions of, if the kind
// of definitions is among the registered ones.
func (s *Server) openDefinitions() {
	d := &s.definitions
	d.resource = meta.GroupResource{Group: s.names.Group(names.GroupExtensions), Resource: "customresourcedefinitions"}
	d.served = map[string]defined{}
	d.synced.Store(-1)
	if s.catalog.Now().Type(d.resource) != nil {
		d.cache = s.hub.Cache(d.resource)
	}
	d.open.Store(true)
	s.types()
}

// types returns the types that are served now.
func (s *Server) types() *resource.State {
	d := &s.definitions
	if d.cache != nil && int64(d.cache.Changed()) != d.synced.Load() {
		s.followDefinitions()
	}
	return s.catalog.Now()
}

// followDefinitions brings the catalog up to what the definitions say.
func (s *Server) followDefinitions() {
	d := &s.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	upTo := d.cache.Changed()
	if int64(upTo) == d.synced.Load() {
		return
	}
	entries := d.cache.List(objectcache.Query{}, "", 0).Entries
	there := make(map[string]bool, len(entries))
	var put, gone []*resource.Type
	var changed []*resource.Type // with other objects than before
	for _, e := range entries {
		name := e.Key().Name
		there[name] = true
		old := d.served[name]
		if old.revision == e.Revision() {
			continue
		}
		next := defined{revision: e.Revision(), outline: outline(e)}
		next.typ, next.broken = s.define(e, next.outline, old)
		d.served[name] = next
		if old.typ != nil && old.typ != next.typ {
			endConverter(old.typ)
		}
		switch {
		case next.typ == old.typ:
		case next.typ == nil:
			gone = append(gone, old.typ)
		default:
			put = append(put, next.typ)
			if old.typ == nil || old.typ.Origin != next.typ.Origin {
				changed = append(changed, next.typ)
			}
		}
	}
	for name, old := range d.served {
		if !there[name] {
			delete(d.served, name)
			if old.typ != nil {
				gone = append(gone, old.typ)
				endConverter(old.typ)
			}
		}
	}
	s.replaceTypes(put, gone, changed)
	d.synced.Store(int64(upTo))
}

// replaceTypes changes the catalog. Watches of types that went or changed end:
// what they would show next has another schema.
func (s *Server) replaceTypes(put, gone, changed []*resource.Type) {
	for _, t := range gone {
		s.catalog.Remove(t.GroupResource())
	}
	if len(put) > 0 {
		s.catalog.Put(put...)
	}
	for _, t := range slices.Concat(gone, changed) {
		s.hub.Drop(t.GroupResource())
	}
	for _, t := range put {
		objects.Index(s.hub, t)
	}
}

// define returns the type that a definition makes under the names that it was
// given, nil if it is not established or the names are those of a registered kind. As long
// as nothing that counts has changed, that is the old one. No schema is read before it is
// needed.
func (s *Server) define(e *objectcache.Entry, crd *meta.Object, old defined) (*resource.Type, error) {
	if !crd.HasCondition("Established") {
		return nil, nil
	}
	origin := originOf(crd)
	accepted := crd.Map("status", "acceptedNames")
	if t := old.typ; t != nil && t.Origin == origin && t.Closed == crd.Terminating() && meta.Equal(accepted, old.outline.Map("status", "acceptedNames")) {
		return t, nil
	}
	if accepted == nil {
		accepted = map[string]any{} // never those that it wishes for
	}
	failed := func(err error) { s.log.Error("a definition is broken", "definition", e.Key().Name, "error", err) }
	read := func() *registry.Kind { return registry.FromDefinition(e.Object(), accepted) }
	t, err := resource.Define(registry.FromDefinition(crd, accepted), s.names, s.rules, read, failed)
	if err != nil {
		s.log.Error("a definition cannot be served", "definition", crd.Name(), "error", err)
		return nil, err
	}
	if s.builtin(t) {
		s.log.Error("a definition cannot be served", "definition", crd.Name(), "error", "its names belong to a built-in kind")
		return nil, nil
	}
	t.Features = s.features // not by Enable: no field has a gate, and it would read the schemas
	t.Origin, t.Closed = origin, crd.Terminating()
	t.Source = s.source(e.Key())
	s.setConverter(t)
	return t, nil
}

// setConverter lets a type convert by the webhook that its definition names.
func (s *Server) setConverter(t *resource.Type) {
	if h := s.conversions.Webhook(t); h != nil {
		t.Converter = h
	}
}

// endConverter lets the connections of a type go that is served no more.
func endConverter(t *resource.Type) {
	if h, ok := t.Converter.(*conversion.Webhook); ok {
		h.End()
	}
}

// source reads the schemas of a definition in the cache, if it is that of the type still.
func (s *Server) source(key meta.Key) func(*resource.Version) *schema.Schema {
	return func(v *resource.Version) *schema.Schema {
		e := s.definitions.cache.Get(key)
		if e == nil || originOf(e.Object()) != v.Origin {
			return nil
		}
		return resource.Source(registry.FromDefinition(withVersion(e.Object(), v.Name), nil), s.names)(v)
	}
}

// withVersion returns a definition with one of its versions alone: reading all for each
// would take the square of the time.
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

// builtin reports whether a type that was registered, served or not, has the names of t.
func (s *Server) builtin(t *resource.Type) bool {
	now := s.catalog.Now()
	for _, other := range []*resource.Type{now.Type(t.GroupResource()), now.Kind(t.GroupKind())} {
		if other != nil && !other.Defined() {
			return true
		}
	}
	return slices.ContainsFunc(now.Withheld(), func(other *resource.Type) bool {
		return other.GroupResource() == t.GroupResource() || other.GroupKind() == t.GroupKind()
	})
}
