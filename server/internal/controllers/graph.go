package controllers

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
)

// graph records the owner references of all stored objects.
type graph struct {
	definitions meta.GroupResource           // resource of the definitions; a change may change the served kinds
	services    meta.GroupResource           // resource of the APIServices; likewise
	foreign     func(meta.GroupVersion) bool // reports whether an extension server serves a version

	mu      sync.Mutex       // guards the fields below, and all nodes and objects
	nodes   map[string]*node // by uid
	waiting map[string]bool  // uids of objects with owners of kinds that may not be served
}

// node is a uid that an object has, or that an owner reference names.
type node struct {
	object     *object          // the object with the uid; nil: none
	last       *object          // the deleted object that had the uid, if its deletion was seen
	dependents map[*object]bool // objects with an owner reference to the uid
}

// object is the state of an object that the graph keeps, at a version. It is immutable.
type object struct {
	place
	uid, version string
	owners       []meta.Owner
	phase        phase
	policy       string    // propagation policy for its deletion by the collector, see policyOf
	since        time.Time // when this server first saw the object, in any version
}

// phase is the phase of the life of an object.
type phase int

const (
	alive              phase = iota
	deleting                 // being deleted, without regard to its dependents
	orphaning                // being deleted; its dependents are orphaned first
	foregroundDeletion       // being deleted; its dependents are deleted first
)

func phaseOf(o *meta.Object) phase {
	switch finalizers := o.Finalizers(); {
	case !o.Terminating():
		return alive
	case slices.Contains(finalizers, meta.FinalizerOrphan):
		return orphaning
	case slices.Contains(finalizers, meta.FinalizerForeground):
		return foregroundDeletion
	}
	return deleting
}

// policyOf returns the propagation policy with which the collector deletes an object: the policy of its finalizers,
// or else Background. The default policy of its kind does not apply, because it may be Orphan.
func policyOf(o *meta.Object) string {
	switch finalizers := o.Finalizers(); {
	case slices.Contains(finalizers, meta.FinalizerOrphan):
		return "Orphan"
	case slices.Contains(finalizers, meta.FinalizerForeground):
		return "Foreground"
	}
	return "Background"
}

func (g *graph) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.nodes)
	clear(g.waiting)
}

// trackOwners records that an object may have owners of kinds that are not served, until decide finds that it has
// none. It must be called before the served kinds are read, so that no change of them is missed.
func (g *graph) trackOwners(uid string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[uid] = true
}

// observe records an event and returns the uids of the objects that it may affect.
func (g *graph) observe(c client.Event) (due []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.Old != nil && (c.Object == nil || c.Object.UID() != c.Old.UID()) {
		due = g.remove(c.Old.UID())
	}
	if c.Object != nil {
		due = append(due, g.put(c)...)
	}
	if c.Resource == g.definitions || c.Resource == g.services {
		due = slices.AppendSeq(due, maps.Keys(g.waiting))
	}
	return due
}

// put records an object. It returns its owners, its previous owners, which may no longer have to wait for it, and the
// object itself if the collector may have to act on it.
func (g *graph) put(c client.Event) (due []string) {
	o := &object{
		place: place{c.Resource, c.Key}, uid: c.Object.UID(), version: c.Object.ResourceVersion(),
		owners: c.Object.OwnerReferences(), phase: phaseOf(c.Object), policy: policyOf(c.Object), since: time.Now(),
	}
	n := g.node(o.uid)
	old := n.object
	n.object, n.last = o, nil
	for _, owner := range o.owners {
		g.link(owner.UID, o)
		due = append(due, owner.UID)
	}
	if old != nil {
		o.since = old.since
		due = append(due, g.unlink(old)...)
	}
	if len(o.owners) > 0 || o.phase != alive {
		due = append(due, o.uid)
	}
	return due
}

// remove records the deletion of an object. It returns its owners, which may have waited for it, and its dependents,
// which may have to be deleted.
func (g *graph) remove(uid string) (due []string) {
	n := g.nodes[uid]
	if n == nil || n.object == nil {
		return nil
	}
	old := n.object
	n.object, n.last = nil, old
	due = g.unlink(old)
	for d := range n.dependents {
		due = append(due, d.uid)
	}
	g.dropUnused(uid)
	return due
}

// link adds an object to the dependents of an owner.
func (g *graph) link(owner string, o *object) {
	n := g.node(owner)
	if n.dependents == nil {
		n.dependents = map[*object]bool{} // allocated late, because most objects have no dependents
	}
	n.dependents[o] = true
}

// unlink removes an object from the dependents of its owners and returns the owners.
func (g *graph) unlink(o *object) (owners []string) {
	for _, owner := range o.owners {
		delete(g.node(owner.UID).dependents, o)
		g.dropUnused(owner.UID)
		owners = append(owners, owner.UID)
	}
	return owners
}

func (g *graph) node(uid string) *node {
	n := g.nodes[uid]
	if n == nil {
		n = &node{}
		g.nodes[uid] = n
	}
	return n
}

// dropUnused removes the node of a uid that no object has and no owner reference names.
func (g *graph) dropUnused(uid string) {
	if n := g.nodes[uid]; n != nil && n.object == nil && len(n.dependents) == 0 {
		delete(g.nodes, uid)
	}
}

// dependents returns the objects that o owns: those in its namespace, or in any namespace if o is cluster-scoped.
// Owner references from other namespaces are ignored.
func (g *graph) dependents(o *object) iter.Seq[*object] {
	return func(yield func(*object) bool) {
		for d := range g.nodes[o.uid].dependents {
			if d.canBeOwnedBy(o) && !yield(d) {
				return
			}
		}
	}
}

func (g *graph) hasDependents(o *object) bool {
	for range g.dependents(o) {
		return true
	}
	return false
}

// blocks reports whether an object delays the foreground deletion of an owner.
func (o *object) blocks(owner string) bool {
	return slices.ContainsFunc(o.owners, func(r meta.Owner) bool { return r.UID == owner && r.BlockOwnerDeletion })
}

// waitsFor reports whether the foreground deletion of an object waits, directly or indirectly, for the object with a
// uid.
func (g *graph) waitsFor(o *object, uid string) bool {
	seen := map[*object]bool{}
	next := []*object{o}
	for len(next) > 0 {
		o, next = next[len(next)-1], next[:len(next)-1]
		if o.phase != foregroundDeletion || seen[o] {
			continue
		}
		seen[o] = true
		for d := range g.dependents(o) {
			if !d.blocks(o.uid) {
				continue
			}
			if d.uid == uid {
				return true
			}
			next = append(next, d)
		}
	}
	return false
}
