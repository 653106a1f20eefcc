package metrics

import "sync"

// Named says whose series there are, of things that come and go and give them their names.
// The zero Named has none.
type Named struct {
	mu    sync.RWMutex
	names map[string]bool
}

// Set says which names there are. It calls gone for each that is no more: nothing is counted
// for it from then on, by those either who still work on what had the name.
func (n *Named) Set(names map[string]bool, gone func(name string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range n.names {
		if !names[name] {
			gone(name)
		}
	}
	n.names = names
}

// Count calls count if there is a name.
func (n *Named) Count(name string, count func()) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.names[name] {
		count()
	}
}
