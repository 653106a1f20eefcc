package metrics

import "sync"

// HandleCache caches metric handles by key, so that counting needs no lookup by label strings. The zero
// value is an empty cache. It is safe for concurrent use.
//
// Keys and labels come from the served resource types, which clients can change. Each change has a
// higher number; an access with a higher number clears the cache and calls a forget function, which
// should delete the series that no longer exist.
type HandleCache[K comparable, V any] struct {
	mu     sync.RWMutex // guards the fields below
	number int64        // the last change seen
	by     map[K]V
}

// Get returns the handle of a key, as of the change number. If there is none, it calls make. make
// and forget are called with the lock held, so that a handle is made once; they must not use k.
func (k *HandleCache[K, V]) Get(number int64, key K, make func() V, forget func()) V {
	k.mu.RLock()
	v, ok := k.by[key]
	current := k.number >= number
	k.mu.RUnlock()
	if ok && current {
		return v
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renew(number, forget)
	if v, ok = k.by[key]; !ok {
		v = make()
		k.by[key] = v
	}
	return v
}

// Renew clears the cache if it is older than the change number.
func (k *HandleCache[K, V]) Renew(number int64, forget func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renew(number, forget)
}

// renew is Renew with k.mu held.
func (k *HandleCache[K, V]) renew(number int64, forget func()) {
	if k.by == nil || k.number < number {
		k.by, k.number = map[K]V{}, number
		forget()
	}
}
