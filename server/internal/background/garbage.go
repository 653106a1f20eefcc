package background

import (
	"context"
	"slices"
	"time"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

// danglingGrace is how long an object keeps an owner that this server has never
// seen: it may come with a restored backup, object by object.
const danglingGrace = 3 * time.Second

// Garbage deletes objects whose owners are gone, and carries out the
// propagation policies Foreground and Orphan. Its keys are uids. What is to be
// done about one is decided by the graph alone, at one look; the writes come
// after it, and hold only if the objects are as they were then.
func Garbage() registry.Loop {
	g := &graph{nodes: map[string]*node{}}
	return registry.Loop{
		Name: "garbage-collector", Identity: true, Forget: g.forget, Observe: g.observe,
		Reconcile: func(ctx context.Context, cl registry.Client, uid string) (time.Duration, error) {
			steps, again := g.decide(uid, time.Now())
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
type step func(ctx context.Context, cl registry.Client) error

// decide says what is to be done about an object now, and when to look again.
func (g *graph) decide(uid string, now time.Time) (steps []step, again time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil || n.object == nil {
		return nil, 0
	}
	switch o := n.object; o.phase {
	case alive:
		return g.collect(o, now)
	case goingAlone:
		return g.orphan(o), 0
	case goingBehind:
		return g.foreground(o, now), 0
	}
	return nil, 0
}

// orphan takes o out of its dependents' owners, and then lets it go.
func (g *graph) orphan(o *object) (steps []step) {
	for d := range g.nodes[o.uid].dependents {
		steps = append(steps, disown(d, []string{o.uid}))
	}
	return append(steps, release(o, meta.FinalizerOrphan))
}

// foreground deletes o's dependents, but those that others own too, and lets o
// go when none is left that blocks it. Objects that wait for each other go
// together. The last of those that block brings the loop back.
func (g *graph) foreground(o *object, now time.Time) (steps []step) {
	blocked := false
	for d := range g.nodes[o.uid].dependents {
		blocked = blocked || d.blocks(o.uid) && !g.waitsFor(d, o.uid)
		if d.phase == alive {
			more, _ := g.collect(d, now)
			steps = append(steps, more...)
		}
	}
	if !blocked {
		steps = append(steps, release(o, meta.FinalizerForeground))
	}
	return steps
}

// collect deletes o if none of its owners keeps it. If some do, those that do
// not are dropped.
func (g *graph) collect(o *object, now time.Time) (steps []step, again time.Duration) {
	s := g.standing(o, now)
	switch without := append(s.absent, s.behind...); {
	case s.keep > 0 && len(without) > 0:
		return []step{disown(o, without)}, 0
	case s.unknown > 0:
		return nil, danglingGrace
	case s.keep > 0 || len(o.owners) == 0:
		return nil, 0
	case len(s.behind) > 0 && len(g.nodes[o.uid].dependents) > 0:
		return []step{destroy(o, "Foreground")}, 0
	}
	return []step{destroy(o, "")}, 0
}

// standing sorts the owners of an object by what they mean for it.
type standing struct {
	keep    int      // they keep it
	unknown int      // they were never seen and may still come
	absent  []string // they are gone, or never were
	behind  []string // they go when it went
}

func (g *graph) standing(o *object, now time.Time) (s standing) {
	for _, r := range o.owners {
		n := g.nodes[r.UID]
		owner := n.object
		switch {
		case owner == nil && (n.seen || now.Sub(o.since) >= danglingGrace):
			s.absent = append(s.absent, r.UID)
		case owner == nil:
			s.unknown++
		case owner.key.Namespace != "" && o.key.Namespace == "":
			s.keep++ // an object of no namespace cannot name one in a namespace: nobody can tell
		case owner.key.Namespace != "" && owner.key.Namespace != o.key.Namespace:
			s.absent = append(s.absent, r.UID) // an owner in another namespace is none
		case owner.phase == goingBehind:
			s.behind = append(s.behind, r.UID)
		default:
			s.keep++
		}
	}
	return s
}

// destroy deletes o. On a conflict the newer object comes as a change, and this
// again.
func destroy(o *object, propagation string) step {
	return func(ctx context.Context, cl registry.Client) error {
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
	return func(ctx context.Context, cl registry.Client) error {
		_, err := cl.Update(ctx, o.resource, o.key, "", func(obj *meta.Object) error {
			if obj.UID() == o.uid {
				change(obj)
			}
			return nil
		})
		return unlessGone(err)
	}
}
