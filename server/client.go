package server

import (
	"context"
	"net/http"
	"sync/atomic"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// client is the server's own way to its objects: the functions behind the
// verbs, without HTTP, authentication and authorization. Field ownership is not
// recorded for what it writes but spec sub-resources keep their rules.
type client struct{ *Server }

// lateClient is a client that waits for Build to give it its server.
type lateClient struct{ server atomic.Pointer[Server] }

func (c *lateClient) client() (*client, error) {
	if s := c.server.Load(); s != nil {
		return s.client, nil
	}
	return nil, meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "the server is not built yet")
}

func (c *client) request(r meta.GroupResource, key meta.Key) (*request, error) {
	t := c.types().Type(r)
	if t == nil {
		return nil, meta.NoSuchResource()
	}
	return &request{
		user: &auth.User{Name: auth.ServerUser, Groups: []string{auth.Masters, auth.Authenticated}}, notes: &notes{},
		isResource: true, group: r.Group, apiVersion: t.Storage.Name, resource: r.Resource,
		namespace: key.Namespace, name: key.Name, version: t.Storage,
	}, nil
}

// Get implements registry.Client.
func (c *client) Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	req, err := c.request(r, key)
	if err != nil {
		return nil, err
	}
	entry, err := c.live(ctx, req.version.Type, key)
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return nil, meta.NotFound(r, key.Name)
	}
	return c.object(entry, req.version)
}

// List implements registry.Client.
func (c *client) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	req, err := c.request(r, meta.Key{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	page, err := c.page(ctx, req, &listOptions{})
	if err != nil {
		return nil, err
	}
	list := make([]*meta.Object, len(page.Entries))
	for i, e := range page.Entries {
		if list[i], err = c.object(e, req.version); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Create implements registry.Client.
func (c *client) Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	req, err := c.request(r, meta.Key{Namespace: obj.Namespace()})
	if err != nil {
		return nil, err
	}
	obj = obj.Clone()
	if err := checkKind(obj, req.version); err != nil {
		return nil, err
	}
	if _, faults := req.version.Conform(obj); len(faults) > 0 {
		return nil, req.version.Misfit(faults)
	}
	res, err := c.createObject(ctx, req, &writeOptions{manager: c.names.Wire(names.ServerManager), validation: "Ignore"}, obj)
	if err != nil {
		return nil, c.status(req, err)
	}
	return c.object(res.entry, req.version)
}

// Update implements registry.Client.
func (c *client) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	req, err := c.request(r, key)
	if err != nil {
		return nil, err
	}
	if subresource != "" {
		req.subresource = subresource
		if req.sub = req.version.Subresource(subresource); req.sub == nil || req.sub.Merge == nil {
			return nil, meta.NoSuchResource()
		}
	}
	w := c.newWrite(req, &writeOptions{manager: c.names.Wire(names.ServerManager), validation: "Ignore"}, "UpdateOptions")
	w.again = true
	var refused error // the caller's own word
	w.mutate = func(live *meta.Object) (*meta.Object, error) {
		in := live.Clone()
		if refused = change(in); refused != nil {
			return nil, refused
		}
		if _, faults := req.version.Conform(in); len(faults) > 0 {
			return nil, req.version.Misfit(faults)
		}
		return c.merge(req, in, live), nil
	}
	res, err := c.write(ctx, w)
	switch {
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, c.status(req, err)
	}
	return c.object(res.entry, req.version)
}

// Delete implements registry.Client.
func (c *client) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	req, err := c.request(r, key)
	if err != nil {
		return err
	}
	_, err = c.remove(ctx, c.newRemoval(req, key, &deleteOptions{
		uid: o.UID, version: o.Version, propagation: o.Propagation, grace: o.GraceSeconds, object: &meta.Object{},
	}))
	if err != nil {
		return c.status(req, err)
	}
	return nil
}

// Feed implements registry.Client.
func (c *client) Feed(r ...meta.GroupResource) registry.Feed { return c.hub.Feed(r...) }

// Types implements registry.Client.
func (c *client) Types() []*registry.Type { return c.types().Types() }

// Get implements registry.Client.
func (c *lateClient) Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	in, err := c.client()
	if err != nil {
		return nil, err
	}
	return in.Get(ctx, r, key)
}

// List implements registry.Client.
func (c *lateClient) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	in, err := c.client()
	if err != nil {
		return nil, err
	}
	return in.List(ctx, r, namespace)
}

// Create implements registry.Client.
func (c *lateClient) Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	in, err := c.client()
	if err != nil {
		return nil, err
	}
	return in.Create(ctx, r, obj)
}

// Update implements registry.Client.
func (c *lateClient) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	in, err := c.client()
	if err != nil {
		return nil, err
	}
	return in.Update(ctx, r, key, subresource, change)
}

// Delete implements registry.Client.
func (c *lateClient) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	in, err := c.client()
	if err != nil {
		return err
	}
	return in.Delete(ctx, r, key, o)
}

// Feed implements registry.Client. Before Build the feed is empty and stays so.
func (c *lateClient) Feed(r ...meta.GroupResource) registry.Feed {
	in, err := c.client()
	if err != nil {
		return nil
	}
	return in.Feed(r...)
}

// Types implements registry.Client.
func (c *lateClient) Types() []*registry.Type {
	in, err := c.client()
	if err != nil {
		return nil
	}
	return in.Types()
}

// Objects returns the server's own way to its objects, without authentication
// and authorization: for the program that runs it, not for callers.
func (s *Server) Objects() registry.Client { return s.client }
