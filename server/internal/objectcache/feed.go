package objectcache

import (
	"iter"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/watch"
)

// Feed is a watch.Feed with decoded objects. It implements controller.Feed.
type Feed struct {
	*watch.Feed[*Entry]
	decode func(*Entry) *meta.Object
}

var _ controller.Feed = (*Feed)(nil)

// Feed returns a feed of some resource types, or, if none are given, of all types, including
// those to come. Its first Pull returns the current objects.
func (s *Set) Feed(types ...meta.GroupResource) *Feed {
	var caches []*watch.Cache[*Entry]
	for _, r := range types {
		caches = append(caches, s.Cache(r).Cache)
	}
	return &Feed{s.set.Feed(caches...), (*Entry).Object}
}

// IdentityFeed is Feed with objects that have only name, namespace, resourceVersion, uid,
// ownerReferences, finalizers and deletionTimestamp.
func (s *Set) IdentityFeed(types ...meta.GroupResource) *Feed {
	f := s.Feed(types...)
	f.decode = (*Entry).identity
	return f
}

// Pull implements controller.Feed. Drop does not end a feed.
func (f *Feed) Pull() (changes []controller.Event, reset bool) {
	events, reset := f.Changes()
	for c := range events {
		changes = append(changes, c)
	}
	return changes, reset
}

// Changes is Pull for a reader that looks at one change at a time: an object is decoded when
// the sequence reaches it. The sequence can be read once.
func (f *Feed) Changes() (changes iter.Seq[controller.Event], reset bool) {
	events, reset := f.Feed.Pull()
	return func(yield func(controller.Event) bool) {
		for c, ev := range events {
			if !yield(f.change(c, ev)) {
				return
			}
		}
	}, reset
}

func (f *Feed) change(c *watch.Cache[*Entry], ev Event) controller.Event {
	ch := controller.Event{Resource: resourceOf(c), Revision: ev.Revision}
	if ev.Old != nil {
		ch.Key, ch.Old = ev.Old.Key(), f.decode(ev.Old)
	}
	if ev.New != nil {
		ch.Key, ch.Object = ev.New.Key(), f.decode(ev.New)
	}
	return ch
}

// Close implements controller.Feed. A feed holds no resources.
func (f *Feed) Close() {}
