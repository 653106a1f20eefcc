package objects

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/storage"
)

// inStorageVersion converts an object from the hub to the current storage version of its definition, so that a write
// that began under an earlier state of the definition does not store an object in an outdated version. Objects of
// registered kinds are returned unchanged.
//
// The definition is a precondition of a write that creates an object or changes its stored version. A migration, or a
// deletion of all objects, begins with a change of the definition. So it either sees the object, or the commit of the
// object fails. Any other write needs no such precondition: its commit compares the object itself, which a migration
// has rewritten, or does not need to rewrite.
func (s *Store) inStorageVersion(ctx context.Context, a *attempt, obj *meta.Object) (*meta.Object, error) {
	t := a.Version.Type
	if !t.Defined() {
		return obj, nil
	}
	now := s.current(t)
	if a.entry == nil || a.entry.Field("apiVersion") != now.Hub.GVK().APIVersion() {
		definitions := meta.GroupResource{Group: s.o.Names.Group(wellknown.GroupExtensions), Resource: "customresourcedefinitions"}
		key := meta.Key{Name: t.GroupResource().String()}
		e := s.o.Hub.Cache(definitions).Get(key) // read before the type, so the type is of this state or a later one
		served := s.o.Types().Type(t.GroupResource())
		if a.entry == nil && (e == nil || served == nil || served.Closed || !sameDefinition(served, t)) {
			return nil, definitionTerminating(a.Version.Resource().GroupResource(), a.Key.Name)
		}
		if e != nil {
			a.require(&precondition{Write: storage.Write{Key: resource.StorageKey(definitions, key), Expect: e.Revision(), Guard: true}, reason: becauseDefined})
		}
		now = s.current(t)
	}
	if now.Storage.Name == t.Storage.Name {
		return obj, nil
	}
	return now.Hub.Convert(ctx, obj)
}

// current returns the type that now belongs to the definition of t, or t itself if the definition was deleted or
// replaced.
func (s *Store) current(t *resource.Type) *resource.Type {
	if now := s.o.Types().Type(t.GroupResource()); now != nil && sameDefinition(now, t) {
		return now
	}
	return t
}

// sameDefinition reports whether two types come from the same definition object, at any revision.
func sameDefinition(a, b *resource.Type) bool {
	return a.Origin.UID == b.Origin.UID
}
