package client

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Client reads and writes the objects of a server by resource. There are two implementations: the
// client inside the process of a server (server.Server.Objects, server.Builder.Client), and New,
// over HTTP. A Client is safe for concurrent use.
//
// In the process, a Client acts as the server itself: authentication and authorization are skipped,
// admission is not. Built-in controllers write as their service accounts. Reads reflect every write
// that any server acknowledged before the call. With the context of a request, which
// authenticators, authorizers, admission plugins and kinds get, reads reflect the writes
// acknowledged before the request and the writes of the request itself.
//
// Resources are named by wire group and plural. Objects are in the hub version of the kind in the
// process, and in the version of the kind's Go struct over HTTP. Unknown fields are errors, unless
// the stored object has them. Errors are *meta.Status, or *UnreadableError for objects whose stored
// data cannot be decoded. Returned objects may be shared: do not modify them.
type Client interface {
	Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error)
	// List returns the newest objects of a namespace, or of all namespaces if it is empty.
	// With an *UnreadableError, it returns the readable objects.
	List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error)
	// Create stores obj and returns the stored object.
	Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error)
	// Update reads the object, calls change with a copy and writes it, again after a
	// conflict. subresource is empty or the name of a subresource that can be updated; to
	// admission, that is an update of the subresource. If change alters nothing, nothing is
	// written. An error of change ends the call and is returned.
	Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(obj *meta.Object) error) (*meta.Object, error)
	Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error
	// Feed returns a cursor over the changes of the given resources, or of all stored
	// resources if none is given. The caller closes it.
	Feed(r ...meta.GroupResource) Feed
	// Types returns the resources that are served now.
	Types() []*registry.Type
}

// UnreadableError reports objects that cannot be decoded, because their stored data is
// damaged or was written by a release that this one cannot convert from. Such objects can be
// deleted.
type UnreadableError struct {
	Resource meta.GroupResource
	Keys     []meta.Key       // at least one
	Revision storage.Revision // of the record, if a single object was read
}

// Error implements error.
func (e *UnreadableError) Error() string {
	name := e.Keys[0].Name
	if ns := e.Keys[0].Namespace; ns != "" {
		name = ns + "/" + name
	}
	if more := len(e.Keys) - 1; more > 0 {
		return fmt.Sprintf("cannot decode the stored data of %s %q and %d other objects: it is damaged, or a release that this one cannot convert from wrote it; read the other objects individually, and delete and recreate these", e.Resource, name, more)
	}
	return fmt.Sprintf("cannot decode the stored data of %s %q: it is damaged, or a release that this one cannot convert from wrote it; delete and recreate the object", e.Resource, name)
}
