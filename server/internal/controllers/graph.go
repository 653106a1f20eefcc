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

// graph knows who owns whom.
type graph struct {
	definitions meta.GroupResource           // their changes change which kinds are served
	services    meta.GroupResource           // as do those of these
	foreign     func(meta.GroupVersion) bool // whether another server serves a version

	mu      sync.Mutex
	nodes   map[string]*node // by uid
	waiting map[string]bool  // the uids of objects with owners of kinds that may not be served
}

// node is a uid that an object has, or that objects name as their owner's.
type node struct {
	object     *object // nil: no object has it
	last       *object // the one that had it and was seen to go, or nil
	dependents map[*object]bool
}

// object is what the graph keeps of an object, as of one version.
type object struct {
	place
	uid, version string
	owners       []meta.Owner
	phase        phase
	policy       string    // with which it is collected, see policyOf
	since        time.Time // when this server first saw it, in any version
}

// phase is how far the life of an object is.
type phase int

const (
	alive       phase = iota
	going             // it is being deleted; its dependents are not its concern
	goingAlone        // it is being deleted; its dependents are to stay
	goingBehind       // it is being deleted; its dependents go before it
)

func phaseOf(o *meta.Object) phase {
	switch finalizers := o.Finalizers(); {
	case !o.Terminating():
		return alive
	case slices.Contains(finalizers, meta.FinalizerOrphan):
		return goingAlone
	case slices.Contains(finalizers, meta.FinalizerForeground):
		return goingBehind
	}
	return going
}

// policyOf returns the propagation policy that an object is collected with: what its
// finalizers say already, and never what a delete that names none means for its kind,
// which for some is to leave what the object owns.
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

// await notes that an object may have owners of kinds that are not served, until
// it is found that it has none: before it is looked which kinds are, so that no
// change of them is missed.
func (g *graph) await(uid string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[uid] = true
}

// observe records a change and returns the uids that it concerns.
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

// put records an object. Owners that it had need not wait for it any more,
// those that it has may have to.
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

// remove records that an object went. Its owners may have waited for it; its
// dependents may have to follow.
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
	g.tidy(uid)
	return due
}

// link makes an object one of an owner's dependents.
func (g *graph) link(owner string, o *object) {
	n := g.node(owner)
	if n.dependents == nil {
		n.dependents = map[*object]bool{} // most objects never have any
	}
	n.dependents[o] = true
}

// unlink takes an object out of its owners' dependents and returns the owners.
func (g *graph) unlink(o *object) (owners []string) {
	for _, owner := range o.owners {
		delete(g.node(owner.UID).dependents, o)
		g.tidy(owner.UID)
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

// tidy forgets a uid that nothing has and nothing names.
func (g *graph) tidy(uid string) {
	if n := g.nodes[uid]; n != nil && n.object == nil && len(n.dependents) == 0 {
		delete(g.nodes, uid)
	}
}

// dependents are the objects that o owns: those in its namespace, and all if it
// is in none. Others may name it, and have no say in how it goes.
func (g *graph) dependents(o *object) iter.Seq[*object] {
	return func(yield func(*object) bool) {
		for d := range g.nodes[o.uid].dependents {
			if d.near(o) && !yield(d) {
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

// blocks reports whether an object keeps its owner from going before it.
func (o *object) blocks(owner string) bool {
	return slices.ContainsFunc(o.owners, func(r meta.Owner) bool { return r.UID == owner && r.BlockOwnerDeletion })
}

// waitsFor reports whether an object waits, directly or by way of others, for
// the one with a uid to go before it.
func (g *graph) waitsFor(o *object, uid string) bool {
	seen := map[*object]bool{}
	next := []*object{o}
	for len(next) > 0 {
		o, next = next[len(next)-1], next[:len(next)-1]
		if o.phase != goingBehind || seen[o] {
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
