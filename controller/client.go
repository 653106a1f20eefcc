package controller

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Client reads and writes the objects of a server from inside it, through the
// same write function as requests, as the server itself: authentication and
// authorization are left out, admission is not. Built-in controllers write as the service
// accounts that they have in the field, such as
// system:serviceaccount:SYSTEM-NAMESPACE:generic-garbage-collector. Types are named by their wire
// group and plural; objects are in the form of
// the kind's hub, whichever version they are stored in or callers write.
// A field that the kind does not have is an error that names it, unless the object had it.
// Errors are *meta.Status, or *UnreadableError of an object whose stored data is
// damaged: it is there, and can only be deleted. Objects that Get and List return may be shared: they
// must not be modified.
//
// What is read shows every write that was acknowledged before the call, by whichever server; with
// the context of a request, which authenticators, authorizers, admission and kinds are given,
// those acknowledged before the request came, and the request's own.
type Client interface {
	Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error)
	// List returns the objects of one namespace ("" for all), newest state. With
	// an *UnreadableError come those that can be read.
	List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error)
	// Create stores obj and returns it as stored.
	Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error)
	// Update reads the object, lets change alter a copy and writes it, again on
	// a conflict. subresource is "" or one that updates, also one that acts and has a
	// Merge: to admission that is an update of the object, too. A change that alters
	// nothing writes nothing; an error of change ends the call.
	Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(obj *meta.Object) error) (*meta.Object, error)
	Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o DeleteOptions) error
	// Feed returns a cursor over all objects of a type: of the types given, or
	// of every stored type if none is given.
	Feed(r ...meta.GroupResource) Feed
	// Types returns the resource types served now.
	Types() []*registry.Type
}

// UnreadableError says which objects cannot be read, since their stored data is
// damaged, or another release wrote it and this one cannot convert it.
type UnreadableError struct {
	Resource meta.GroupResource
	Keys     []meta.Key       // one at least
	Revision storage.Revision // of the first one's record, if it was asked for alone
}

// Error implements error.
func (e *UnreadableError) Error() string {
	name := e.Keys[0].Name
	if ns := e.Keys[0].Namespace; ns != "" {
		name = ns + "/" + name
	}
	if more := len(e.Keys) - 1; more > 0 {
		return fmt.Sprintf("the stored data of %s %q and of %d others cannot be read: it is damaged, or of a release whose objects this one cannot convert; other objects can be read one by one, such a one can be deleted and created anew", e.Resource, name, more)
	}
	return fmt.Sprintf("the stored data of %s %q cannot be read: it is damaged, or of a release whose objects this one cannot convert; it can be deleted and created anew", e.Resource, name)
}

// DeleteOptions are the options of a delete from inside.
type DeleteOptions = registry.DeleteOptions
