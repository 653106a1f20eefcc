package eventlog

import "orch.io/controlplane/storage"

// Waiters holds the readers that have read everything, in groups of those that wait
// for the same. It is made with make, and guarded like the log.
//
// No wake-up is lost: a reader looks for commits and parks under one hold of the
// lock, so that whatever is appended later finds it parked. Who is woken has left;
// it looks at the log again and parks anew if there was nothing for it.
//
// A reader that is parked cannot fall behind while nothing is committed that
// concerns it: Quiet takes it past what was.
type Waiters[K comparable] map[K]*Group

// Group is readers that are woken together.
type Group struct {
	woken   chan struct{}
	members int
	quiet   storage.Revision // set before woken is closed, and not again
}

// Woken is closed when the group is released.
func (g *Group) Woken() <-chan struct{} { return g.woken }

// Quiet returns the revision up to which nothing concerned the group. It may be
// asked for when the group was released, or Leave said that it was woken.
func (g *Group) Quiet() storage.Revision { return g.quiet }

// Park returns the group in which to wait.
func (w Waiters[K]) Park(k K) *Group {
	g := w[k]
	if g == nil {
		g = &Group{woken: make(chan struct{})}
		w[k] = g
	}
	g.members++
	return g
}

// Leave takes a reader out of the group that it waited in, and reports false if that
// was woken already.
func (w Waiters[K]) Leave(k K, g *Group) bool {
	if w[k] != g {
		return false
	}
	if g.members--; g.members == 0 {
		delete(w, k)
	}
	return true
}

// Wake adds the group of k, if there is one, to those that are to be released: up to
// revision quiet nothing concerned it.
func (w Waiters[K]) Wake(woken Woken, k K, quiet storage.Revision) Woken {
	g := w[k]
	if g == nil {
		return woken
	}
	delete(w, k)
	g.quiet = quiet
	return append(woken, g)
}

// Woken are groups that are to be released: all of a commit at once, and not
// necessarily under the lock.
type Woken []*Group

// Release lets the readers go on. Each group is released once.
func (w Woken) Release() {
	for _, g := range w {
		close(g.woken)
	}
}
