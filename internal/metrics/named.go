package metrics

import "sync"

// NameFilter restricts counting to a set of names, so that series exist only for things that exist, such
// as configured webhooks. The zero value has no names. It is safe for concurrent use.
type NameFilter struct {
	mu    sync.RWMutex
	names map[string]bool
}

// Set replaces the names. It calls gone, with the lock held, for each name that is removed. After
// Set, Count ignores these names, even for work that began before.
func (n *NameFilter) Set(names map[string]bool, gone func(name string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range n.names {
		if !names[name] {
			gone(name)
		}
	}
	n.names = names
}

// Count calls count if the name exists. The name is not removed while count runs.
func (n *NameFilter) Count(name string, count func()) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.names[name] {
		count()
	}
}
