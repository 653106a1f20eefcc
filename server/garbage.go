package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

// danglingGrace is how long an object keeps an owner that this server has never
// seen: it may come with a restored backup, object by object.
const danglingGrace = 3 * time.Second

// garbageLoop deletes objects whose owners are gone, and carries out the
// propagation policies Foreground and Orphan. Its keys are uids.
func garbageLoop() Loop {
	g := &graph{nodes: map[string]*node{}, dependents: map[string]map[string]bool{}, gone: map[string]bool{}}
	return Loop{Name: "garbage-collector", Identity: true, Forget: g.forget, Observe: g.observe, Reconcile: g.reconcile}
}

// graph knows who owns whom, by uid.
type graph struct {
	mu         sync.Mutex
	nodes      map[string]*node
	dependents map[string]map[string]bool // owner → dependents
	gone       map[string]bool            // owners that were seen to go, while they have dependents
}

// node is what the graph keeps of an object.
type node struct {
	resource     meta.GroupResource
	key          meta.Key
	uid, version string
	owners       []meta.OwnerReference
	orphan       bool // it is being deleted, its dependents are to stay
	foreground   bool // it is being deleted, its dependents first
	terminating  bool
	first        time.Time // when this server first saw it
}

func newNode(c registry.Change) *node {
	n := &node{
		resource: c.Resource, key: c.Key, uid: c.Object.UID(), version: c.Object.ResourceVersion(),
		owners: c.Object.OwnerReferences(), terminating: c.Object.Terminating(), first: time.Now(),
	}
	if n.terminating {
		n.orphan = slices.Contains(c.Object.Finalizers(), orphanFinalizer)
		n.foreground = !n.orphan && slices.Contains(c.Object.Finalizers(), foregroundFinalizer)
	}
	return n
}

func (g *graph) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.nodes)
	clear(g.dependents)
	clear(g.gone)
}

// observe records a change and returns whom it concerns.
func (g *graph) observe(c registry.Change) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var due []string
	if c.Old != nil && (c.Object == nil || c.Object.UID() != c.Old.UID()) {
		due = append(due, g.remove(c.Old.UID())...)
	}
	if c.Object == nil {
		return due
	}
	n := newNode(c)
	if old := g.nodes[n.uid]; old != nil {
		n.first = old.first
		g.unlink(old)
		for _, o := range old.owners {
			due = append(due, o.UID) // it need not wait for this one any more
		}
	}
	g.nodes[n.uid] = n
	for _, o := range n.owners {
		if g.dependents[o.UID] == nil {
			g.dependents[o.UID] = map[string]bool{}
		}
		g.dependents[o.UID][n.uid] = true
		due = append(due, o.UID) // a foreground deletion of the owner may wait for this one
	}
	if len(n.owners) > 0 || n.terminating {
		due = append(due, n.uid)
	}
	return due
}

func (g *graph) remove(uid string) (due []string) {
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	delete(g.nodes, uid)
	for _, o := range n.owners {
		due = append(due, o.UID) // one may wait for it
	}
	g.unlink(n)
	for d := range g.dependents[uid] {
		g.gone[uid] = true
		due = append(due, d)
	}
	return due
}

func (g *graph) unlink(n *node) {
	for _, o := range n.owners {
		delete(g.dependents[o.UID], n.uid)
		if len(g.dependents[o.UID]) == 0 {
			delete(g.dependents, o.UID)
			delete(g.gone, o.UID)
		}
	}
}

func (g *graph) get(uid string) *node {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.nodes[uid]
}

// dependentsOf returns the objects that name an owner.
func (g *graph) dependentsOf(uid string) []*node {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []*node
	for d := range g.dependents[uid] {
		if n := g.nodes[d]; n != nil {
			list = append(list, n)
		}
	}
	return list
}

func (g *graph) reconcile(ctx context.Context, cl registry.Client, uid string) (time.Duration, error) {
	n := g.get(uid)
	if n == nil {
		return 0, nil
	}
	switch {
	case n.orphan:
		return 0, g.orphanAll(ctx, cl, n)
	case n.foreground:
		return 0, g.foreground(ctx, cl, n)
	case n.terminating:
		return 0, nil
	}
	return g.collect(ctx, cl, n)
}

// orphanAll takes n out of its dependents' owners, and then lets it go.
func (g *graph) orphanAll(ctx context.Context, cl registry.Client, n *node) error {
	for _, d := range g.dependentsOf(n.uid) {
		if err := dropOwners(ctx, cl, d, []string{n.uid}); err != nil {
			return err
		}
	}
	return dropFinalizer(ctx, cl, n, orphanFinalizer)
}

// foreground deletes n's dependents, but those that others own too, and lets n
// go when none is left that blocks it. Objects that wait for each other go
// together.
func (g *graph) foreground(ctx context.Context, cl registry.Client, n *node) error {
	blocked := false
	for _, d := range g.dependentsOf(n.uid) {
		blocked = blocked || d.blocks(n.uid) && !g.waitsFor(d, n.uid)
		if d.terminating {
			continue
		}
		if _, err := g.collect(ctx, cl, d); err != nil {
			return err
		}
	}
	if blocked {
		return nil // the last of them brings the loop back
	}
	return dropFinalizer(ctx, cl, n, foregroundFinalizer)
}

// blocks reports whether n keeps its owner from going.
func (n *node) blocks(owner string) bool {
	return slices.ContainsFunc(n.owners, func(o meta.OwnerReference) bool { return o.UID == owner && o.BlockOwnerDeletion })
}

// waitsFor reports whether n, itself deleted in the foreground, waits for an
// object with that uid, directly or by way of others.
func (g *graph) waitsFor(n *node, uid string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := map[string]bool{}
	next := []*node{n}
	for len(next) > 0 {
		n, next = next[len(next)-1], next[:len(next)-1]
		if !n.foreground || seen[n.uid] {
			continue
		}
		seen[n.uid] = true
		for d := range g.dependents[n.uid] {
			dependent := g.nodes[d]
			switch {
			case dependent == nil || !dependent.blocks(n.uid):
			case d == uid:
				return true
			default:
				next = append(next, dependent)
			}
		}
	}
	return false
}

// owners sorts the owners of an object by what they mean for it.
type owners struct {
	solid  int      // that keep it
	open   int      // that may still come
	absent []string // that are gone
	going  []string // that wait for their dependents to go
}

func (g *graph) sort(n *node) owners {
	var s owners
	for _, o := range n.owners {
		switch owner := g.get(o.UID); {
		case owner == nil && (g.wasSeen(o.UID) || time.Since(n.first) >= danglingGrace):
			s.absent = append(s.absent, o.UID)
		case owner == nil:
			s.open++
		case owner.key.Namespace != "" && n.key.Namespace == "":
			s.solid++ // an object of no namespace cannot name one in a namespace: nobody can tell
		case owner.key.Namespace != "" && owner.key.Namespace != n.key.Namespace:
			s.absent = append(s.absent, o.UID) // an owner in another namespace is none
		case owner.foreground:
			s.going = append(s.going, o.UID)
		default:
			s.solid++
		}
	}
	return s
}

// collect deletes n if none of its owners keeps it, and drops those that do not
// if others do.
func (g *graph) collect(ctx context.Context, cl registry.Client, n *node) (time.Duration, error) {
	s := g.sort(n)
	without := append(s.absent, s.going...)
	switch {
	case s.solid > 0 && len(without) > 0:
		return 0, dropOwners(ctx, cl, n, without)
	case s.open > 0:
		return danglingGrace, nil
	case s.solid > 0 || len(n.owners) == 0:
		return 0, nil
	case len(s.going) > 0 && len(g.dependentsOf(n.uid)) > 0:
		return 0, deleteNode(ctx, cl, n, "Foreground")
	}
	return 0, deleteNode(ctx, cl, n, "")
}

func (g *graph) wasSeen(uid string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gone[uid]
}

func deleteNode(ctx context.Context, cl registry.Client, n *node, propagation string) error {
	err := cl.Delete(ctx, n.resource, n.key, registry.DeleteOptions{
		UID: n.uid, Version: n.version, Propagation: propagation,
	})
	if meta.IsNotFound(err) {
		return nil
	}
	return err // on a conflict the newer object comes as a change, and this call again
}

func dropFinalizer(ctx context.Context, cl registry.Client, n *node, finalizer string) error {
	return edit(ctx, cl, n, func(o *meta.Object) {
		o.SetFinalizers(slices.DeleteFunc(o.Finalizers(), func(f string) bool { return f == finalizer }))
	})
}

func dropOwners(ctx context.Context, cl registry.Client, n *node, uids []string) error {
	return edit(ctx, cl, n, func(o *meta.Object) {
		rest := slices.DeleteFunc(slices.Clone(o.List("metadata", "ownerReferences")), func(v any) bool {
			m, _ := v.(map[string]any)
			uid, _ := m["uid"].(string)
			return slices.Contains(uids, uid)
		})
		if len(rest) == 0 {
			o.Delete("metadata", "ownerReferences")
			return
		}
		o.Set(rest, "metadata", "ownerReferences")
	})
}

// edit changes n unless it is gone, or another object has its name by now.
func edit(ctx context.Context, cl registry.Client, n *node, change func(*meta.Object)) error {
	_, err := cl.Update(ctx, n.resource, n.key, "", func(o *meta.Object) error {
		if o.UID() == n.uid {
			change(o)
		}
		return nil
	})
	if meta.IsNotFound(err) {
		return nil
	}
	return err
}
