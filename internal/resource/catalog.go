package resource

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Catalog holds the resource types that a server serves now. Readers see one
// consistent state without locking; types may come and go while requests run.
type Catalog struct {
	now atomic.Pointer[State]
	mu  sync.Mutex // guards replacing now
}

// State is the catalog at one moment. It never changes.
type State struct {
	Serial int64 // grows with every change
	types  map[meta.GroupResource]*Type
	kinds  map[meta.GroupKind]*Type
	sorted []*Type
	public []*registry.Type // of sorted
}

// Now returns the current state.
func (c *Catalog) Now() *State {
	if s := c.now.Load(); s != nil {
		return s
	}
	return &State{}
}

// Put adds types; one of the same group and plural is replaced.
func (c *Catalog) Put(types ...*Type) {
	c.change(func(m map[meta.GroupResource]*Type) {
		for _, t := range types {
			m[t.GroupResource()] = t
		}
	})
}

// Remove takes a type out.
func (c *Catalog) Remove(r meta.GroupResource) {
	c.change(func(m map[meta.GroupResource]*Type) { delete(m, r) })
}

func (c *Catalog) change(edit func(map[meta.GroupResource]*Type)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.Now()
	next := &State{Serial: old.Serial + 1, types: maps.Clone(old.types), kinds: map[meta.GroupKind]*Type{}}
	if next.types == nil {
		next.types = map[meta.GroupResource]*Type{}
	}
	edit(next.types)
	for _, t := range next.types {
		next.kinds[t.GroupKind()] = t
		next.sorted = append(next.sorted, t)
	}
	slices.SortFunc(next.sorted, compareTypes)
	for _, t := range next.sorted {
		next.public = append(next.public, &t.Type)
	}
	c.now.Store(next)
}

// Types returns all types, sorted by group and plural, the core group first.
func (s *State) Types() []*Type { return s.sorted }

// Public returns the types as programs see them, in their order.
func (s *State) Public() []*registry.Type { return s.public }

// Type returns the type of a wire group and plural, or nil.
func (s *State) Type(r meta.GroupResource) *Type { return s.types[r] }

// Kind returns the type of a wire group and kind, or nil.
func (s *State) Kind(k meta.GroupKind) *Type { return s.kinds[k] }

// Version returns the served version that a path names, or nil.
func (s *State) Version(r meta.Resource) *Version {
	t := s.types[r.GroupResource()]
	if t == nil {
		return nil
	}
	if v := t.Version(r.Version); v != nil && v.Served {
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
