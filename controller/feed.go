package controller

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/storage"
)

// Feed is a cursor over the changes of some resource types. At first it holds
// the current objects as changes without Old. A Feed is used by one goroutine
// at a time.
type Feed interface {
	// Pull returns the changes since the last call that this server has seen;
	// after a write was acknowledged by this server, it is seen. It never
	// blocks. If history was lost, reset is true and the changes are the whole
	// current state again.
	Pull() (changes []Event, reset bool)
	// Wait blocks until there is something to pull or the context ends.
	Wait(ctx context.Context) error
	// Revision is the revision up to which Pull has returned everything.
	Revision() storage.Revision
	// Newest returns the revision of the newest change of the feed's types, whether Pull
	// has returned it or not. It waits for nobody, and any goroutine may call it at any time.
	Newest() storage.Revision
	Close()
}

// Event is one change of an object. Object is nil if it was removed, Old is nil
// if it was new. Both are shared: they must not be modified.
type Event struct {
	Resource    meta.GroupResource
	Key         meta.Key
	Object, Old *meta.Object
	Revision    storage.Revision
}
