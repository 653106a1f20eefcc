package objectcache

import (
	"iter"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/watch"
)

// Feed is a watch.Feed with decoded objects. It implements client.Feed.
type Feed struct {
	*watch.Feed[*Entry]
	decode func(*Entry) *meta.Object
}

var _ client.Feed = (*Feed)(nil)

// Feed returns a feed of some resource types, or, if no types are given, of all types, including types that are added
// later. Its first Changes returns the current objects.
func (s *Set) Feed(types ...meta.GroupResource) *Feed {
	var caches []*watch.Cache[*Entry]
	for _, r := range types {
		caches = append(caches, s.Cache(r).Cache)
	}
	return &Feed{s.set.Feed(caches...), (*Entry).Object}
}

// IdentityFeed is like Feed, with objects that have only name, namespace, resourceVersion, uid, ownerReferences,
// finalizers and deletionTimestamp.
func (s *Set) IdentityFeed(types ...meta.GroupResource) *Feed {
	f := s.Feed(types...)
	f.decode = (*Entry).identity
	return f
}

// Changes implements client.Feed. Drop does not end a feed. An object is decoded only when the iteration reaches it.
func (f *Feed) Changes() (changes iter.Seq[client.Event], reset bool) {
	events, reset := f.Feed.Changes()
	return func(yield func(client.Event) bool) {
		for c, ev := range events {
			if !yield(f.change(c, ev)) {
				return
			}
		}
	}, reset
}

func (f *Feed) change(c *watch.Cache[*Entry], ev Event) client.Event {
	ch := client.Event{Resource: resourceOf(c), Revision: ev.Revision}
	if ev.Old != nil {
		ch.Key, ch.Old = ev.Old.Key(), f.decode(ev.Old)
	}
	if ev.New != nil {
		ch.Key, ch.Object = ev.New.Key(), f.decode(ev.New)
	}
	return ch
}

// Close implements client.Feed. A feed holds no resources.
func (f *Feed) Close() {}
