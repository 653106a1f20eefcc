package client

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
)

// Controller maps the changes of some resources to keys, and reconciles each key. It runs in
// a server (server.Builder.Controllers) or outside (Run), at most one call of Reconcile for a
// key at a time. Keys are chosen by the controller; often they are the key of the changed
// object, as namespace/name (meta.Key.String).
//
// If several servers share a store, one of them runs the controller, unless EveryServer is
// set: the server that holds the controller's Lease. When another server takes over, its
// MapEvent gets every object as new. What Reconcile writes with its Client or its context is
// committed only while the server holds the Lease, even if the server was paused and has not
// noticed the loss yet: the write fails as unavailable and the context ends. Effects
// elsewhere, such as writes to other servers, are not protected: they must be idempotent.
// Outside of a server, an Election does the same without this protection.
type Controller struct {
	Name string

	// EveryServer runs the controller in each of the servers that share a store, because it
	// maintains state of its server, or because it is harmless if several run it.
	EveryServer bool

	// Types are the resources whose changes MapEvent gets; nil means all stored resources of a
	// server, or all objects given to New.
	Types []meta.GroupResource

	// Identity reduces the objects that MapEvent gets in a server to name, namespace,
	// resourceVersion, uid, ownerReferences, finalizers and deletionTimestamp, which is
	// cheaper.
	Identity bool

	// MapEvent returns the keys to reconcile after a change. At the start, and after Forget,
	// it gets every object as new. It is never called concurrently with itself or Forget, but
	// with Reconcile. A change at which it panics is skipped.
	MapEvent func(e Event) []string

	// Forget drops the state that MapEvent keeps, before MapEvent gets every object again. It
	// may be nil.
	Forget func()

	// Reconcile makes the state of a key right and returns when to reconcile it again; zero
	// means at the next change. After an error or a panic the key is reconciled again, after
	// pauses that grow from 5 milliseconds to 30 seconds. An object that is gone is not an
	// error (meta.IsNotFound). Calls for different keys may be concurrent.
	Reconcile func(ctx context.Context, c Client, key string) (again time.Duration, err error)

	// Workers is the maximum number of concurrent calls of Reconcile; zero is 16.
	Workers int
}
