package eventlog

import "orch.io/controlplane/storage"

// Waiters holds the readers that wait for new commits, in groups of readers that wait for the same key. It is created
// with make, and guarded by the lock of the log.
//
// No wake-up is lost: a reader looks for commits and parks without releasing the lock in between, so a later commit
// finds it parked. A reader that was woken is no longer parked. It looks at the log again and parks again if it
// finds nothing.
//
// A parked reader does not fall behind while there are only commits that do not concern it: Quiet moves it past them.
type Waiters[K comparable] map[K]*Group

// Group is a set of readers that are woken together.
type Group struct {
	woken   chan struct{}
	members int
	quiet   storage.Revision // set once, before woken is closed
}

// Woken is closed when the group is released.
func (g *Group) Woken() <-chan struct{} { return g.woken }

// Quiet returns the revision up to which no commit concerned the group. It is valid after the group was released or
// Leave returned false.
func (g *Group) Quiet() storage.Revision { return g.quiet }

// Park adds a reader to the group of k and returns the group.
func (w Waiters[K]) Park(k K) *Group {
	g := w[k]
	if g == nil {
		g = &Group{woken: make(chan struct{})}
		w[k] = g
	}
	g.members++
	return g
}

// Leave removes a reader from its group. It returns false if the group was woken already.
func (w Waiters[K]) Leave(k K, g *Group) bool {
	if w[k] != g {
		return false
	}
	if g.members--; g.members == 0 {
		delete(w, k)
	}
	return true
}

// Wake removes the group of k, if any, and appends it to woken. quiet is the revision up to which no commit
// concerned the group. The caller must call Release on the result.
func (w Waiters[K]) Wake(woken Woken, k K, quiet storage.Revision) Woken {
	g := w[k]
	if g == nil {
		return woken
	}
	delete(w, k)
	g.quiet = quiet
	return append(woken, g)
}

// Woken is a list of groups that were woken but not yet released. They can be released without the lock.
type Woken []*Group

// Release lets the readers of the groups continue. It must be called once.
func (w Woken) Release() {
	for _, g := range w {
		close(g.woken)
	}
}
