package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/registry"
)

// danglingGrace is how long an object keeps an owner that this server has never
// seen: it may come with a restored backup, object by object.
const danglingGrace = 3 * time.Second

// Look reads from the store itself which uid the object with a key has, "" if
// there is none. An object that is there but cannot be read is an error.
type Look func(ctx context.Context, r meta.GroupResource, key meta.Key) (uid string, err error)

// Garbage deletes objects whose owners are gone, and carries out the
// propagation policies Foreground and Orphan. Its keys are uids. What is to be
// done about one is decided by the graph alone, at one look; the writes come
// after it, and hold only if the objects are as they were then.
//
// An owner counts as gone only if its kind is served, or was when it went, and
// look finds nobody who has its name and uid. An owner of any other kind, also of one that
// another server serves, may be there or not: nobody can tell, so what it owns stays. So does what names an
// owner in a namespace that is not its own, as long as that is there, and an event
// says so. What is anywhere is in the graph before anything is decided, so a
// server that was started anew decides the same.
func Garbage(p names.Profile, look Look, foreign func(meta.GroupVersion) bool) controller.Controller {
	g := &graph{
		nodes: map[string]*node{}, waiting: map[string]bool{}, foreign: foreign,
		definitions: meta.GroupResource{Group: p.Group(names.GroupExtensions), Resource: "customresourcedefinitions"},
		services:    meta.GroupResource{Group: p.Group(names.GroupAggregation), Resource: "apiservices"},
	}
	return controller.Controller{
		Name: "garbagecollector", Identity: true, Forget: g.forget, Observe: g.observe,
		Reconcile: func(ctx context.Context, cl controller.Client, uid string) (time.Duration, error) {
			steps, again, err := g.consider(ctx, cl, look, uid)
			if err != nil {
				return 0, err
			}
			for _, do := range steps {
				if err := do(ctx, cl); err != nil {
					return 0, err
				}
			}
			return again, nil
		},
	}
}

// step is one write that was decided on.
type step func(ctx context.Context, cl controller.Client) error

// place is where an object is.
type place struct {
	resource meta.GroupResource
	key      meta.Key
}

// known is what a decision rests on beside the graph: the types that are served,
// and the uids that the store has where it was asked.
type known struct {
	now   time.Time
	types []*registry.Type
	uids  map[place]string
	ask   []place       // where to look before deciding again
	again time.Duration // when to look again, if not 0
}

// consider decides what is to be done about an object, and asks the store what
// there is to know for that.
func (g *graph) consider(ctx context.Context, cl controller.Client, look Look, uid string) ([]step, time.Duration, error) {
	g.await(uid)
	k := known{now: time.Now(), types: cl.Types(), uids: map[place]string{}}
	for {
		steps := g.decide(uid, &k)
		if len(k.ask) == 0 {
			return steps, k.again, nil
		}
		for _, at := range k.ask {
			found, err := look(ctx, at.resource, at.key)
			if err != nil {
				return nil, 0, fmt.Errorf("looking for the owner %s of %s: %w", at.key, at.resource, err)
			}
			k.uids[at] = found
		}
		k.ask = nil
	}
}

// decide says what is to be done about an object, as far as k tells.
func (g *graph) decide(uid string, k *known) (steps []step) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil || n.object == nil {
		delete(g.waiting, uid)
		return nil
	}
	o := n.object
	if g.standing(o, k).unresolved == 0 {
		delete(g.waiting, uid)
	}
	switch o.phase {
	case alive:
		return g.collect(o, k)
	case goingAlone:
		return g.orphan(o)
	case goingBehind:
		return g.foreground(o, k)
	}
	return nil
}

// orphan takes o out of its dependents' owners, and then lets it go.
func (g *graph) orphan(o *object) (steps []step) {
	for d := range g.dependents(o) {
		steps = append(steps, disown(d, []string{o.uid}))
	}
	return append(steps, release(o, meta.FinalizerOrphan))
}

// foreground deletes o's dependents, but those that others own too, and lets o
// go when none is left that blocks it. Objects that wait for each other go
// together. The last of those that block brings the controller back.
func (g *graph) foreground(o *object, k *known) (steps []step) {
	blocked := false
	for d := range g.dependents(o) {
		blocked = blocked || d.blocks(o.uid) && !g.waitsFor(d, o.uid)
		if d.phase == alive {
			steps = append(steps, g.collect(d, k)...)
		}
	}
	if !blocked {
		steps = append(steps, release(o, meta.FinalizerForeground))
	}
	return steps
}

// collect deletes o if none of its owners keeps it. If some do, those that do
// not are dropped. As long as one is not known for certain, nothing is done.
func (g *graph) collect(o *object, k *known) []step {
	s := g.standing(o, k)
	switch without := append(s.absent, s.behind...); {
	case s.misplaced != nil:
		return []step{complain(o, *s.misplaced)}
	case s.unresolved > 0:
		return nil
	case s.keep > 0 && len(without) > 0:
		return []step{disown(o, without)}
	case s.keep > 0 || len(o.owners) == 0:
		return nil
	case len(s.behind) > 0 && g.hasDependents(o):
		return []step{destroy(o, "Foreground")}
	}
	return []step{destroy(o, o.policy)}
}

// standing sorts the owners of an object by what they mean for it.
type standing struct {
	keep       int                  // they keep it
	unresolved int                  // nobody can tell, or not yet
	absent     []string             // they are gone, or never were
	behind     []string             // they go when it went
	misplaced  *meta.OwnerReference // names one in a namespace that is not the object's
}

func (g *graph) standing(o *object, k *known) (s standing) {
	for _, r := range o.owners {
		n := g.nodes[r.UID]
		at, resolved, misplaced := n.placeOf(o, r, k.types)
		if n.object == nil && n.last == nil && g.foreign(meta.ParseAPIVersion(r.APIVersion)) {
			resolved = false // whatever of the kind is kept here is not what callers see
		}
		if misplaced {
			s.misplaced = &r
		}
		if !resolved {
			s.unresolved++
			continue
		}
		if n.object != nil && n.object.place == at {
			if n.object.phase == goingBehind {
				s.behind = append(s.behind, r.UID)
			} else {
				s.keep++
			}
			continue
		}
		switch uid, asked := k.uids[at]; {
		case !asked:
			k.ask = append(k.ask, at)
			s.unresolved++
		case uid == r.UID:
			s.keep++ // the graph is yet to hear of it
		case n.last == nil && k.now.Sub(o.since) < danglingGrace:
			k.again = danglingGrace
			s.unresolved++
		default:
			s.absent = append(s.absent, r.UID)
		}
	}
	return s
}

// placeOf returns where the owner that o names by r is, if it is anywhere. That
// is not resolved if its kind is not served, unless it was seen to go, and if it
// is misplaced: an owner is in the object's namespace or in none. One that went
// is no longer misplaced, wherever it was.
func (n *node) placeOf(o *object, r meta.OwnerReference, types []*registry.Type) (at place, resolved, misplaced bool) {
	if n.object != nil && !o.near(n.object) {
		return at, false, true
	}
	gv := meta.ParseAPIVersion(r.APIVersion)
	t := typeOf(types, meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind})
	if t == nil {
		if last := n.last; last != nil && o.near(last) && last.resource.Group == gv.Group && last.key.Name == r.Name {
			return last.place, true, false
		}
		return at, false, false
	}
	if t.Namespaced && o.key.Namespace == "" {
		return at, false, true
	}
	at = place{t.GroupResource(), meta.Key{Name: r.Name}}
	if t.Namespaced {
		at.key.Namespace = o.key.Namespace
	}
	return at, true, false
}

// near reports whether an owner is where the object's owners are.
func (o *object) near(owner *object) bool {
	return owner.key.Namespace == "" || owner.key.Namespace == o.key.Namespace
}

// typeOf returns the type of a kind that is kept and served in a version, or nil.
func typeOf(types []*registry.Type, k meta.GroupVersionKind) *registry.Type {
	for _, t := range types {
		if t.Kind == k.Kind && !t.Virtual && slices.Contains(t.ServedVersions, meta.GroupVersion{Group: k.Group, Version: k.Version}) {
			return t
		}
	}
	return nil
}

// destroy deletes o. On a conflict the newer object comes as a change, and this
// again.
func destroy(o *object, propagation string) step {
	return func(ctx context.Context, cl controller.Client) error {
		return unlessGone(cl.Delete(ctx, o.resource, o.key, controller.DeleteOptions{
			UID: o.uid, Version: o.version, Propagation: propagation,
		}))
	}
}

// release takes a finalizer from o.
func release(o *object, finalizer string) step {
	return edit(o, func(obj *meta.Object) { obj.RemoveFinalizer(finalizer) })
}

// disown takes owners from o.
func disown(o *object, uids []string) step {
	return edit(o, func(obj *meta.Object) {
		rest := slices.DeleteFunc(slices.Clone(obj.List("metadata", "ownerReferences")), func(v any) bool {
			m, _ := v.(map[string]any)
			uid, _ := m["uid"].(string)
			return slices.Contains(uids, uid)
		})
		if len(rest) == 0 {
			obj.Delete("metadata", "ownerReferences")
			return
		}
		obj.Set(rest, "metadata", "ownerReferences")
	})
}

// edit changes o unless it is gone, or another object has its name by now.
func edit(o *object, change func(*meta.Object)) step {
	return func(ctx context.Context, cl controller.Client) error {
		_, err := cl.Update(ctx, o.resource, o.key, "", func(obj *meta.Object) error {
			if obj.UID() == o.uid {
				change(obj)
			}
			return nil
		})
		return unlessGone(err)
	}
}
