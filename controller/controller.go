// Package controller is how parts of a server work on its objects from inside: a
// Client reads and writes them, a Feed tells what changes, and a Controller makes
// things right one key at a time. Package server runs controllers.
package controller

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
)

// Controller sees every change of some types, picks keys that need attention, and
// makes things right for one key at a time. Keys are the controller's own words, often
// that of the event: Key.String gives namespace/name. What is gone by then is no error
// (meta.IsNotFound), or it comes back again and again. A server runs the controller
// (server.Server.Run), at most one call for a key at a time.
type Controller struct {
	Name string

	// Types are the types whose changes the controller sees; nil: all stored types.
	Types []meta.GroupResource

	// Identity says that Observe asks only who objects are and whether they may
	// go, which costs less: they have name, namespace, resourceVersion, uid,
	// ownerReferences, finalizers and deletionTimestamp, and nothing else.
	Identity bool

	// Observe returns the keys that a change makes due. At start it sees every
	// object as new, and again after Forget. It is never called together with
	// itself or Forget, but while Reconcile runs. A change at which it panics is
	// passed over.
	Observe func(e Event) []string

	// Forget drops what Observe remembers, before the whole state comes again.
	Forget func()

	// Reconcile makes things right for a key and says when to look again (0:
	// when the next change asks for it). After an error or a panic it is called
	// again, with growing pauses. Calls for different keys may run at the same
	// time.
	Reconcile func(ctx context.Context, client Client, key string) (again time.Duration, err error)
}
