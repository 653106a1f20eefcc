package objects

import (
	"context"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objectcache"
)

// Content is the Client of who empties namespaces: it lists and deletes objects of the
// types that the server withholds, too.
type Content struct{ *Client }

// Types implements client.Client.
func (c Content) Types() []*registry.Type {
	types := slices.Clone(c.Client.Types())
	if s := c.store.Load(); s != nil {
		for _, t := range s.o.Types().Withheld() {
			types = append(types, &t.Type)
		}
	}
	return types
}

// List implements client.Client.
func (c Content) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	if s, v := c.withheld(r); v != nil {
		return s.ownList(ctx, v, namespace)
	}
	return c.Client.List(ctx, r, namespace)
}

// Delete implements client.Client.
func (c Content) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	if s, v := c.withheld(r); v != nil {
		return s.ownDelete(ctx, v, key, o)
	}
	return c.Client.Delete(ctx, r, key, o)
}

func (c Content) withheld(r meta.GroupResource) (*Store, *resource.Version) {
	if s := c.store.Load(); s != nil {
		if t := s.o.Types().Stored(r); t != nil && t.Withheld {
			return s, t.Hub
		}
	}
	return nil, nil
}

// Unknown returns how many objects the store has in a namespace of each type that the
// server does not have at all.
func (c Content) Unknown(ctx context.Context, namespace string) (map[meta.GroupResource]int, error) {
	s := c.store.Load()
	if s == nil {
		return nil, meta.Unavailable("the server is not built yet")
	}
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	return s.Unknown(namespace), nil
}

// Unknown returns how many objects the caches show, in a namespace or, if that is empty, in
// all, of each type that the server does not have at all. Leases by which servers lead are no
// program's.
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
