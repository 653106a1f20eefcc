package objects

import (
	"context"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objectcache"
)

// NamespaceContent is the Client of the controller that empties namespaces. It also lists and deletes objects of withheld
// types, which the server knows but does not serve.
type NamespaceContent struct{ *Client }

// Types implements client.Client.
func (c NamespaceContent) Types() []*registry.Type {
	types := slices.Clone(c.Client.Types())
	if s := c.store.Load(); s != nil {
		for _, t := range s.o.Types().Withheld() {
			types = append(types, &t.Type)
		}
	}
	return types
}

// List implements client.Client.
func (c NamespaceContent) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	if s, v := c.withheld(r); v != nil {
		return s.ownList(ctx, v, namespace)
	}
	return c.Client.List(ctx, r, namespace)
}

// Delete implements client.Client.
func (c NamespaceContent) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	if s, v := c.withheld(r); v != nil {
		return s.ownDelete(ctx, v, key, o)
	}
	return c.Client.Delete(ctx, r, key, o)
}

// withheld returns the Store and the hub version of a withheld type, or nil if r is not a withheld type.
func (c NamespaceContent) withheld(r meta.GroupResource) (*Store, *resource.Version) {
	if s := c.store.Load(); s != nil {
		if t := s.o.Types().Stored(r); t != nil && t.Unserved {
			return s, t.Hub
		}
	}
	return nil, nil
}

// Unknown returns the number of stored objects in a namespace for each resource that the server does not know. It
// first waits until the caches are up to date.
func (c NamespaceContent) Unknown(ctx context.Context, namespace string) (map[meta.GroupResource]int, error) {
	s := c.store.Load()
	if s == nil {
		return nil, meta.Unavailable("the server is not built yet")
	}
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	return s.Unknown(namespace), nil
}

// Unknown returns the number of objects in the caches for each resource that the server does not know, in one
// namespace or, if namespace is empty, in all namespaces. It skips the resource of the Leases that elect leaders,
// which every server uses even if it does not serve Leases.
func (s *Store) Unknown(namespace string) map[meta.GroupResource]int {
	unknown, types := map[meta.GroupResource]int{}, s.o.Types()
	for _, r := range s.o.Hub.Stored() {
		if types.Stored(r) != nil || r == s.leases() {
			continue
		}
		cache := s.o.Hub.Cache(r)
		if n := len(cache.List(objectcache.Query{Namespace: namespace}, "", 0).Entries) + len(cache.Damaged(namespace)); n > 0 {
			unknown[r] = n
		}
	}
	return unknown
}
