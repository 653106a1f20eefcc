package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
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
// An owner reference names an object in the namespace of the object that has it, or a
// cluster-scoped one. An owner counts as absent only if its kind is served, or was when the
// owner went, and look finds no object of its name and uid there. An event reports a
// reference to an owner in another namespace. Whether an owner exists whose kind is not
// served, or is served by another server, is unknown, so the objects that it owns stay. So
// does a cluster-scoped object whose owner is of a namespaced kind. Every stored object is in
// the graph before anything is decided, so a server that was started anew decides the same.
func Garbage(p names.Profile, look Look, foreign func(meta.GroupVersion) bool) client.Controller {
	g := &graph{
		nodes: map[string]*node{}, waiting: map[string]bool{}, foreign: foreign,
		definitions: meta.GroupResource{Group: p.Group(wellknown.GroupExtensions), Resource: "customresourcedefinitions"},
		services:    meta.GroupResource{Group: p.Group(wellknown.GroupAggregation), Resource: "apiservices"},
	}
	return client.Controller{
		Name: "garbagecollector", Identity: true, Forget: g.forget, MapEvent: g.observe,
		Reconcile: func(ctx context.Context, cl client.Client, uid string) (time.Duration, error) {
			ctx = actor.Take(ctx)
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
type step func(ctx context.Context, cl client.Client) error

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
func (g *graph) consider(ctx context.Context, cl client.Client, look Look, uid string) ([]step, time.Duration, error) {
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
	var steps []step
	if s.misplaced != nil {
		steps = []step{complain(o, *s.misplaced)}
	}
	switch without := append(s.absent, s.behind...); {
	case s.unresolved > 0:
		return steps
	case s.keep > 0 && len(without) > 0:
		return append(steps, disown(o, without))
	case s.keep > 0 || len(o.owners) == 0:
		return steps
	case len(s.behind) > 0 && g.hasDependents(o):
		return append(steps, destroy(o, "Foreground"))
	}
	return append(steps, destroy(o, o.policy))
}

// standing sorts the owners of an object by what they mean for it.
type standing struct {
	keep       int         // they keep it
	unresolved int         // nobody can tell, or not yet
	absent     []string    // they are gone, or never were
	behind     []string    // they go when it went
	misplaced  *meta.Owner // names an owner outside the object's namespace
}

func (g *graph) standing(o *object, k *known) (s standing) {
	for _, r := range o.owners {
		n := g.nodes[r.UID]
		at := n.locate(o, r, k.types)
		if n.object == nil && n.last == nil && g.foreign(meta.ParseAPIVersion(r.APIVersion)) {
			at.unknown = true // whatever of the kind is kept here is not what callers see
		}
		if at.misplaced || n.object != nil && !o.near(n.object) {
			s.misplaced = &r
		}
		if at.unknown || at.misplaced {
			s.unresolved++
			continue
		}
		if at.nowhere {
			s.absent = append(s.absent, r.UID)
			continue
		}
		if n.object != nil && n.object.place == at.place {
			if n.object.phase == goingBehind {
				s.behind = append(s.behind, r.UID)
			} else {
				s.keep++
			}
			continue
		}
		switch uid, asked := k.uids[at.place]; {
		case !asked:
			k.ask = append(k.ask, at.place)
			s.unresolved++
		case uid == r.UID:
			s.keep++ // the graph is yet to hear of it
		case n.object == nil && n.last == nil && k.now.Sub(o.since) < danglingGrace:
			k.again = danglingGrace
			s.unresolved++
		default:
			s.absent = append(s.absent, r.UID)
		}
	}
	return s
}

// location says where an owner is if it exists. At most one of the flags is set.
type location struct {
	place
	unknown   bool // its kind is not served
	nowhere   bool // no object can have its kind
	misplaced bool // its kind is namespaced, but what it owns is cluster-scoped
}

// locate returns the location of the owner that o names by r: an owner is in the object's
// namespace or in none. If the kind is not served, an owner that was seen to go is still
// located where it was.
func (n *node) locate(o *object, r meta.Owner, types []*registry.Type) location {
	gv := meta.ParseAPIVersion(r.APIVersion)
	t, exists := typeOf(types, meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind})
	switch last := n.last; {
	case t == nil && exists:
		return location{nowhere: true}
	case t == nil && last != nil && o.near(last) && last.resource.Group == gv.Group && last.key.Name == r.Name:
		return location{place: last.place}
	case t == nil:
		return location{unknown: true}
	case t.Namespaced && o.key.Namespace == "":
		return location{misplaced: true}
	case t.Kind+listSuffix == r.Kind:
		return location{nowhere: true}
	}
	at := place{t.GroupResource(), meta.Key{Name: r.Name}}
	if t.Namespaced {
		at.key.Namespace = o.key.Namespace
	}
	return location{place: at}
}

// near reports whether an owner is where the object's owners are.
func (o *object) near(owner *object) bool {
	return owner.key.Namespace == "" || owner.key.Namespace == o.key.Namespace
}

// listSuffix ends the kinds of lists.
const listSuffix = "List"

// typeOf returns the type that an owner reference names by its kind, or nil. As for the
// field's garbage collector, the kind may be in lower case. The kind of a list counts as
// served with its type, and the kind List with any type of the version, though no object
// has either; exists reports whether the kind is one of these or the type's.
func typeOf(types []*registry.Type, k meta.GroupVersionKind) (t *registry.Type, exists bool) {
	version := meta.GroupVersion{Group: k.Group, Version: k.Version}
	for _, next := range types {
		if next.Virtual || !slices.Contains(next.ServedVersions, version) {
			continue
		}
		switch k.Kind {
		case next.Kind:
			return next, true
		case strings.ToLower(next.Kind), next.Kind + listSuffix:
			t, exists = next, true
		case listSuffix:
			exists = true
		}
	}
	return t, exists
}

// destroy deletes o. On a conflict the newer object comes as a change, and this
// again.
func destroy(o *object, propagation string) step {
	return func(ctx context.Context, cl client.Client) error {
		return unlessGone(cl.Delete(ctx, o.resource, o.key, registry.DeleteOptions{
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
	return func(ctx context.Context, cl client.Client) error {
		_, err := cl.Update(ctx, o.resource, o.key, "", func(obj *meta.Object) error {
			if obj.UID() == o.uid {
				change(obj)
			}
			return nil
		})
		return unlessGone(err)
	}
}
