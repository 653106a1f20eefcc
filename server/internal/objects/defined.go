package objects

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// asDefined returns an object of the hub as the definition of its type stores objects by now,
// which the caches show: a write that knows an earlier state of it leaves nothing that somebody
// would have to find and put right.
//
// A new object depends on the definition: whoever looks for objects when that has changed,
// since it goes or since they are to be stored anew, sees this one, or it is not stored. So does one
// that comes to be stored in another version. Any other one that is there depends on itself: who looked
// has stored it anew, or may leave it as it is.
func (s *Store) asDefined(ctx context.Context, a *attempt, obj *meta.Object) (*meta.Object, error) {
	t := a.Version.Type
	if !t.Defined() {
		return obj, nil
	}
	now := s.current(t)
	if a.entry == nil || a.entry.Field("apiVersion") != now.Hub.GVK().APIVersion() {
		definitions := meta.GroupResource{Group: s.o.Names.Group(names.GroupExtensions), Resource: "customresourcedefinitions"}
		key := meta.Key{Name: t.GroupResource().String()}
		e := s.o.Hub.Cache(definitions).Get(key) // before the type, which is of this state or of a later one
		there := s.o.Types().Type(t.GroupResource())
		if a.entry == nil && (e == nil || there == nil || there.Closed || !sameDefinition(there, t)) {
			return nil, closed(a.Version.Resource().GroupResource(), a.Key.Name)
		}
		if e != nil {
			a.definition = []storage.Write{{Key: resource.StorageKey(definitions, key), Expect: e.Revision(), Guard: true}}
		}
		now = s.current(t)
	}
	if now.Storage.Name == t.Storage.Name {
		return obj, nil
	}
	return now.Hub.Convert(ctx, obj)
}

// current returns the type that the definition of a type makes by now, as the caches show
// it. The type itself stands for one that is gone.
func (s *Store) current(t *resource.Type) *resource.Type {
	if now := s.o.Types().Type(t.GroupResource()); now != nil && sameDefinition(now, t) {
		return now
	}
	return t
}

// sameDefinition reports whether two types were made by one definition, changed
// or not.
func sameDefinition(a, b *resource.Type) bool {
	return a.Origin.UID == b.Origin.UID
}
