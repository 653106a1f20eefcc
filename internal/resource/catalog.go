package resource

import (
	"slices"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Catalog holds the resource types that a server currently has. It is safe for concurrent use. Now
// returns an immutable State without locking; Put and Remove publish a new State, so types can come
// and go while requests run.
type Catalog struct {
	now atomic.Pointer[State]
	mu  sync.Mutex // serializes writers of now
}

// State is an immutable snapshot of a Catalog.
type State struct {
	Serial   int64                        // increases with each change
	types    map[meta.GroupResource]*Type // by the group of each version
	kinds    map[meta.GroupKind]*Type
	sorted   []*Type
	public   []*registry.Type // sorted, as registry types
	withheld []*Type          // registered but not served; in none of the fields above
}

// Now returns the current state.
func (c *Catalog) Now() *State {
	if s := c.now.Load(); s != nil {
		return s
	}
	return &State{}
}

// Put adds types. A type replaces the existing type of the same group and plural.
func (c *Catalog) Put(types ...*Type) {
	c.change(func(now []*Type) []*Type {
		for _, t := range types {
			now = append(removeType(now, t.GroupResource()), t)
		}
		return now
	})
}

// Remove removes the type of r, if there is one.
func (c *Catalog) Remove(r meta.GroupResource) {
	c.change(func(now []*Type) []*Type { return removeType(now, r) })
}

func removeType(types []*Type, r meta.GroupResource) []*Type {
	return slices.DeleteFunc(types, func(t *Type) bool { return t.GroupResource() == r })
}

func (c *Catalog) change(edit func(types []*Type) []*Type) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.Now()
	next := &State{Serial: old.Serial + 1, types: map[meta.GroupResource]*Type{}, kinds: map[meta.GroupKind]*Type{}}
	next.sorted = edit(slices.Concat(old.sorted, old.withheld))
	slices.SortFunc(next.sorted, compareTypes)
	for _, t := range next.sorted {
		if t.Unserved {
			next.withheld = append(next.withheld, t)
		}
	}
	next.sorted = slices.DeleteFunc(next.sorted, func(t *Type) bool { return t.Unserved })
	for _, t := range next.sorted {
		for _, v := range t.Versions {
			next.types[v.Resource().GroupResource()] = t
			next.kinds[v.GVK().GroupKind()] = t
		}
		next.public = append(next.public, &t.Type)
	}
	c.now.Store(next)
}

// Types returns the served types, sorted by group and plural. The caller must not modify the slice.
func (s *State) Types() []*Type { return s.sorted }

// Public returns the served types in the form of the public API, in the same order. The caller must
// not modify the slice.
func (s *State) Public() []*registry.Type { return s.public }

// Withheld returns the types that the server has but does not serve, in the same order.
func (s *State) Withheld() []*Type { return s.withheld }

// Stored returns the type whose objects are stored under r, served or withheld, or nil.
func (s *State) Stored(r meta.GroupResource) *Type {
	if i := slices.IndexFunc(s.withheld, func(t *Type) bool { return t.GroupResource() == r }); i >= 0 {
		return s.withheld[i]
	}
	return s.types[r]
}

// Type returns the served type with this plural and a version in this wire group, or nil.
func (s *State) Type(r meta.GroupResource) *Type { return s.types[r] }

// Kind returns the served type with this kind and a version in this wire group, or nil.
func (s *State) Kind(k meta.GroupKind) *Type { return s.kinds[k] }

// Registered reports whether a served registered kind has a version in the group. Kinds of
// CustomResourceDefinitions do not count.
func (s *State) Registered(group string) bool {
	return slices.ContainsFunc(s.sorted, func(t *Type) bool {
		return !t.Defined() && slices.ContainsFunc(t.Versions, func(v *Version) bool { return v.Group == group })
	})
}

// Version returns the served version of a resource in a request path, or nil.
func (s *State) Version(r meta.GroupVersionResource) *Version {
	t := s.types[r.GroupResource()]
	if t == nil {
		return nil
	}
	if v := t.VersionIn(meta.GroupVersion{Group: r.Group, Version: r.Version}); v != nil && v.Served {
		return v
	}
	return nil
}

func compareTypes(a, b *Type) int {
	switch {
	case a.Group != b.Group && a.Group < b.Group, a.Group == b.Group && a.Plural < b.Plural:
		return -1
	case a.Group == b.Group && a.Plural == b.Plural:
		return 0
	}
	return 1
}
