package server

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// client is the server's own way to its objects: the functions behind the
// verbs, without HTTP, authentication and authorization. It is there before its
// server, for the parts that the server is built from.
type client struct {
	server atomic.Pointer[Server] // nil until Build
}

// request makes the request that a call stands for.
func (c *client) request(r meta.GroupResource, key meta.Key) (*Server, *request, error) {
	s := c.server.Load()
	if s == nil {
		return nil, nil, meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "the server is not built yet")
	}
	t := s.types().Type(r)
	if t == nil {
		return nil, nil, meta.NoSuchResource()
	}
	return s, &request{
		user:       &auth.User{Name: auth.ServerUser, Groups: []string{auth.Masters, auth.Authenticated}},
		isResource: true, group: r.Group, apiVersion: t.Storage.Name, resource: r.Resource,
		namespace: key.Namespace, name: key.Name, version: t.Storage,
	}, nil
}

// refusal is an error as callers from inside see it.
func (s *Server) refusal(r *request, err error) error {
	if damaged := (*registry.UnreadableError)(nil); errors.As(err, &damaged) {
		return damaged
	}
	return s.status(r, err)
}

// Get implements registry.Client.
func (c *client) Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	s, req, err := c.request(r, key)
	if err != nil {
		return nil, err
	}
	entry, err := s.live(ctx, req.version.Type, key)
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return nil, meta.NotFound(r, key.Name)
	}
	return s.object(entry, req.version)
}

// List implements registry.Client.
func (c *client) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	s, req, err := c.request(r, meta.Key{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	page, err := s.entries(ctx, req, &listOptions{})
	if err != nil {
		return nil, err
	}
	unreadable := s.allReadable(req)
	list := make([]*meta.Object, len(page.Entries))
	for i, e := range page.Entries {
		if list[i], err = s.object(e, req.version); err != nil {
			return nil, err
		}
	}
	return list, unreadable
}

// Create implements registry.Client.
func (c *client) Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	s, req, err := c.request(r, meta.Key{Namespace: obj.Namespace()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.RequestTime)
	defer cancel()
	obj = obj.Clone()
	obj.SetResourceVersion("") // that of the object it was made from
	if err := checkKind(obj, req.version); err != nil {
		return nil, err
	}
	if _, faults := req.version.Conform(obj); len(faults) > 0 {
		return nil, req.version.Misfit(faults)
	}
	res, err := s.createObject(ctx, req, &writeOptions{manager: s.names.Wire(names.ServerManager), validation: "Ignore"}, obj)
	if err != nil {
		return nil, s.refusal(req, err)
	}
	return s.object(res.entry, req.version)
}

// Update implements registry.Client.
func (c *client) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	s, req, err := c.request(r, key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.RequestTime)
	defer cancel()
	if subresource != "" {
		req.subresource = subresource
		if req.sub = req.version.Subresource(subresource); req.sub == nil || req.sub.Merge == nil {
			return nil, meta.NoSuchResource()
		}
	}
	w := s.newWrite(req, &writeOptions{manager: s.names.Wire(names.ServerManager), validation: "Ignore"}, "UpdateOptions")
	var refused error // the caller's own word
	w.mutate = func(live *meta.Object) (*meta.Object, error) {
		in := live.Clone()
		if refused = change(in); refused != nil {
			return nil, refused
		}
		if _, faults := req.version.Conform(in); len(faults) > 0 {
			return nil, req.version.Misfit(faults)
		}
		return s.merge(req, in, live), nil
	}
	res, err := s.write(ctx, w)
	switch {
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, s.refusal(req, err)
	}
	return s.object(res.entry, req.version)
}

// Delete implements registry.Client.
func (c *client) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	s, req, err := c.request(r, key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.RequestTime)
	defer cancel()
	_, err = s.remove(ctx, s.newRemoval(req, key, &deleteOptions{
		uid: given(o.UID), version: given(o.Version), propagation: given(o.Propagation), grace: o.GraceSeconds, object: &meta.Object{},
	}))
	if err != nil {
		return s.refusal(req, err)
	}
	return nil
}

// Feed implements registry.Client. Before Build it returns nil.
func (c *client) Feed(r ...meta.GroupResource) registry.Feed {
	if s := c.server.Load(); s != nil {
		return s.hub.Feed(r...)
	}
	return nil
}

// Types implements registry.Client. Before Build there are none.
func (c *client) Types() []*registry.Type {
	if s := c.server.Load(); s != nil {
		return s.types().Types()
	}
	return nil
}

// Objects returns the server's own way to its objects, without authentication
// and authorization: for the program that runs it, not for callers.
func (s *Server) Objects() registry.Client { return s.client }
