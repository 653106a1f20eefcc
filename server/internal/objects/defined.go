package objects

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/storage"
)

// asDefined returns an object of the hub in the storage version that the caches show by now for its definition, so
// that a write which began under an earlier state of the definition leaves nothing to convert.
//
// A new object, and one whose stored version changes, has the definition as a precondition: a migration or deletion
// of all objects, which begins with a change of the definition, either sees the object, or the commit fails. Any other
// write depends on the object itself, which the migration has rewritten, or need not rewrite.
func (s *Store) asDefined(ctx context.Context, a *attempt, obj *meta.Object) (*meta.Object, error) {
	t := a.Version.Type
	if !t.Defined() {
		return obj, nil
	}
	now := s.current(t)
	if a.entry == nil || a.entry.Field("apiVersion") != now.Hub.GVK().APIVersion() {
		definitions := meta.GroupResource{Group: s.o.Names.Group(wellknown.GroupExtensions), Resource: "customresourcedefinitions"}
		key := meta.Key{Name: t.GroupResource().String()}
		e := s.o.Hub.Cache(definitions).Get(key) // before the type, which is then of this state or a later one
		there := s.o.Types().Type(t.GroupResource())
		if a.entry == nil && (e == nil || there == nil || there.Closed || !sameDefinition(there, t)) {
			return nil, closed(a.Version.Resource().GroupResource(), a.Key.Name)
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

// current returns the type that the definition of t makes by now, or t if the definition is gone.
func (s *Store) current(t *resource.Type) *resource.Type {
	if now := s.o.Types().Type(t.GroupResource()); now != nil && sameDefinition(now, t) {
		return now
	}
	return t
}

// sameDefinition reports whether two types were made by the same definition object, at whatever revision.
func sameDefinition(a, b *resource.Type) bool {
	return a.Origin.UID == b.Origin.UID
}
