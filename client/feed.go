package client

import (
	"context"
	"iter"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Feed is a cursor over the changes of some resources. It starts with the current objects, as
// changes without Old. All methods but Newest must be called by one goroutine at a time.
type Feed interface {
	// Changes returns the changes since the last call. It never blocks. The sequence can be
	// iterated once; a change that is not iterated is lost. If history was lost, reset is
	// true and the changes are the whole current state.
	//
	// In the process of the server, the changes include all writes that this server
	// acknowledged before the call. Over HTTP they follow later.
	Changes() (changes iter.Seq[Event], reset bool)
	// Wait blocks until there are changes or the context ends.
	Wait(ctx context.Context) error
	// Revision is the revision up to which Changes has returned all changes.
	Revision() storage.Revision
	// Newest returns the revision of the newest change of the resources. It does not block
	// and is safe for concurrent use.
	Newest() storage.Revision
	Close()
}

// Event is one change of an object. Object is nil if the object was deleted, Old is nil if it
// was created. Both are shared: do not modify them.
type Event struct {
	Resource    meta.GroupResource
	Key         meta.Key
	Object, Old *meta.Object
	Revision    storage.Revision
}

// Owners returns the keys of the owners of a kind, by the ownerReferences of Object and Old.
// An owner of a namespaced kind is in the namespace of the object. Use it in MapEvent of a
// controller whose objects own others.
func (e Event) Owners(kind meta.GroupKind, scope registry.Scope) (keys []string) {
	for _, o := range []*meta.Object{e.Old, e.Object} {
		if o == nil {
			continue
		}
		for _, r := range o.OwnerReferences() {
			if r.Kind != kind.Kind || meta.ParseAPIVersion(r.APIVersion).Group != kind.Group {
				continue
			}
			owner := meta.Key{Name: r.Name}
			if scope == registry.Namespaced {
				owner.Namespace = e.Key.Namespace
			}
			keys = append(keys, owner.String())
		}
	}
	return keys
}
