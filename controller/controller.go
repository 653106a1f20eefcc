// Package controller is how parts of a server work on its objects from inside: a
// Client reads and writes them, a Feed tells what changes, and a Controller makes
// things right one key at a time. Package server runs controllers.
//
// # Led controllers
//
// Where several servers may be over one store (storage.Shared), one at a time runs a
// controller, unless Controller.EveryServer says otherwise: the one that holds its Lease. When
// another one begins, its Observe sees every object as new. What Reconcile writes through the
// Client that it is given, or with the context that it is given, is committed only as long as
// its server leads, also if that was paused and has not found out yet: then the write is
// refused as unavailable, the context ends, and nothing of it is in the store. What
// Reconcile does elsewhere, at other servers, has no such help: that has to be harmless when
// it is done twice.
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

	// EveryServer says that each of several servers over one store runs the controller, for
	// it keeps something of its own server in step, or what it does harms nobody when it is
	// done twice. Else one of them does, its leader; see Led controllers.
	EveryServer bool

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
