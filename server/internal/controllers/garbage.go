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

// danglingGrace is how long an object with an owner that this server has never seen is kept. The owner may still
// come, for example from a backup that is being restored object by object.
const danglingGrace = 3 * time.Second

// ReadUID reads the uid of an object from the store, not from a cache. It returns "" if the object does not exist, and
// an error if it cannot be read.
type ReadUID func(ctx context.Context, r meta.GroupResource, key meta.Key) (uid string, err error)

// Garbage returns the controller that deletes objects whose owners are gone, and implements the propagation policies
// Foreground and Orphan. Its keys are uids. It decides what to do with an object from one consistent state of the
// graph. The writes follow, with the uid and version in that state as preconditions.
//
// An owner reference names an object in the namespace of its dependent, or a cluster-scoped object. An owner counts
// as absent only if its kind is served, or was served when the owner was deleted, and look does not find its name
// with its uid. If an owner is in another namespace, an event reports the reference. If the kind of an owner is not
// served, or is served by an extension server, it is unknown whether the owner exists, so its dependents are kept. A
// cluster-scoped object whose owner has a namespaced kind is kept, too. Every stored object is in the graph before
// the first decision, so a restarted server decides the same.
func Garbage(p names.Profile, look ReadUID, foreign func(meta.GroupVersion) bool) client.Controller {
	g := &graph{
		nodes: map[string]*node{}, waiting: map[string]bool{}, foreign: foreign,
		definitions: meta.GroupResource{Group: p.Group(wellknown.GroupExtensions), Resource: "customresourcedefinitions"},
		services:    meta.GroupResource{Group: p.Group(wellknown.GroupAggregation), Resource: "apiservices"},
	}
	return client.Controller{
		Name: "garbagecollector", Identity: true, Forget: g.forget, MapEvent: g.observe,
		Reconcile: func(ctx context.Context, cl client.Client, uid string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			steps, again, err := g.plan(ctx, cl, look, uid)
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

// step is a write that was decided.
type step func(ctx context.Context, cl client.Client) error

// place is the resource and key of an object.
type place struct {
	resource meta.GroupResource
	key      meta.Key
}

// known is the information for a decision that is not in the graph: the served types, and uids that were read from
// the store.
type known struct {
	now   time.Time
	types []*registry.Type
	uids  map[place]string
	ask   []place       // places to read before the next decision
	again time.Duration // when to decide again; 0: after a change
}

// plan decides what to do with an object. It reads uids from the store until the decision is complete.
func (g *graph) plan(ctx context.Context, cl client.Client, look ReadUID, uid string) ([]step, time.Duration, error) {
	g.trackOwners(uid)
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

// decide returns the writes for an object. If it needs more uids from the store, it sets k.ask, and the result is to
// be discarded.
func (g *graph) decide(uid string, k *known) (steps []step) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil || n.object == nil {
		delete(g.waiting, uid)
		return nil
	}
	o := n.object
	if g.classifyOwners(o, k).unresolved == 0 {
		delete(g.waiting, uid)
	}
	switch o.phase {
	case alive:
		return g.collect(o, k)
	case orphaning:
		return g.orphan(o)
	case foregroundDeletion:
		return g.foreground(o, k)
	}
	return nil
}

// orphan removes o from the owners of its dependents, and then removes its finalizer.
func (g *graph) orphan(o *object) (steps []step) {
	for d := range g.dependents(o) {
		steps = append(steps, disown(d, []string{o.uid}))
	}
	return append(steps, release(o, meta.FinalizerOrphan))
}

// foreground deletes the dependents of o, except those with other owners that exist, and removes the finalizer of o
// when no dependent blocks it. Objects that wait for each other in a cycle do not block each other. The deletion of
// the last dependent that blocks triggers the controller again.
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

// collect deletes o if none of its owners keeps it. If some owners keep it, the references to the others are removed.
// It does nothing as long as the state of an owner is unknown.
func (g *graph) collect(o *object, k *known) []step {
	s := g.classifyOwners(o, k)
	var steps []step
	if s.misplaced != nil {
		steps = []step{reportMisplaced(o, *s.misplaced)}
	}
	switch dropped := append(s.absent, s.behind...); {
	case s.unresolved > 0:
		return steps
	case s.keep > 0 && len(dropped) > 0:
		return append(steps, disown(o, dropped))
	case s.keep > 0 || len(o.owners) == 0:
		return steps
	case len(s.behind) > 0 && g.hasDependents(o):
		return append(steps, destroy(o, "Foreground"))
	}
	return append(steps, destroy(o, o.policy))
}

// owners classifies the owner references of an object.
type owners struct {
	keep       int         // number of owners that keep the object
	unresolved int         // number of owners that may or may not exist
	absent     []string    // uids of owners that do not exist
	behind     []string    // uids of owners that are deleted after the object
	misplaced  *meta.Owner // a reference to an owner in another namespace
}

// classifyOwners classifies the owners of an object. It adds the places that must be read from the store to k.ask.
// The caller holds mu.
func (g *graph) classifyOwners(o *object, k *known) (s owners) {
	for _, r := range o.owners {
		n := g.nodes[r.UID]
		at := n.ownerLocation(o, r, k.types)
		if n.object == nil && n.last == nil && g.foreign(meta.ParseAPIVersion(r.APIVersion)) {
			at.unknown = true // objects of the kind in this store are not the objects that callers see
		}
		if at.misplaced || n.object != nil && !o.canBeOwnedBy(n.object) {
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
			if n.object.phase == foregroundDeletion {
				s.behind = append(s.behind, r.UID)
			} else {
				s.keep++
			}
			continue
		}
		switch uid, wasRead := k.uids[at.place]; {
		case !wasRead:
			k.ask = append(k.ask, at.place)
			s.unresolved++
		case uid == r.UID:
			s.keep++ // its event has not arrived yet
		case n.object == nil && n.last == nil && k.now.Sub(o.since) < danglingGrace:
			k.again = danglingGrace
			s.unresolved++
		default:
			s.absent = append(s.absent, r.UID)
		}
	}
	return s
}

// location is where an owner is, if it exists. At most one of the flags is set.
type location struct {
	place
	unknown   bool // its kind is not served
	nowhere   bool // no object can have its kind
	misplaced bool // its kind is namespaced, but its dependent is cluster-scoped
}

// ownerLocation returns the location of the owner that r, a reference of o, names. An owner is cluster-scoped or in
// the namespace of o. If its kind is not served but its deletion was seen, the location is where it was.
func (n *node) ownerLocation(o *object, r meta.Owner, types []*registry.Type) location {
	gv := meta.ParseAPIVersion(r.APIVersion)
	t, exists := typeOf(types, meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind})
	switch last := n.last; {
	case t == nil && exists:
		return location{nowhere: true}
	case t == nil && last != nil && o.canBeOwnedBy(last) && last.resource.Group == gv.Group && last.key.Name == r.Name:
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

// canBeOwnedBy reports whether an owner is cluster-scoped or in the namespace of the object.
func (o *object) canBeOwnedBy(owner *object) bool {
	return owner.key.Namespace == "" || owner.key.Namespace == o.key.Namespace
}

// listSuffix is the suffix of the kinds of lists.
const listSuffix = "List"

// typeOf returns the type for the kind of an owner reference, or nil. As in the garbage collector of Kubernetes, the
// kind may be in lower case. The kind of a list is found if its type is served, and the kind List if any type of the
// version is, although no object has such a kind. exists reports whether the kind is one of these or the kind of the
// type.
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

// destroy deletes o. After a conflict, the event of the newer object triggers the controller again.
func destroy(o *object, propagation string) step {
	return func(ctx context.Context, cl client.Client) error {
		return unlessGone(cl.Delete(ctx, o.resource, o.key, registry.DeleteOptions{
			UID: o.uid, Version: o.version, Propagation: propagation,
		}))
	}
}

// release removes a finalizer from o.
func release(o *object, finalizer string) step {
	return edit(o, func(obj *meta.Object) { obj.RemoveFinalizer(finalizer) })
}

// disown removes owner references from o.
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

// edit changes o, unless it was deleted or its name belongs to another object by now.
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
