package metrics

import "sync"

// Kept keeps the handles of label sets by a key, so that who counts looks nothing up by
// strings. Its zero value keeps none.
//
// Keys and labels come from what a server serves, which its callers may change: each
// change has a higher number, and what was kept before is forgotten with it. So is, by
// forget, what nobody is to see any more.
type Kept[K comparable, V any] struct {
	mu     sync.RWMutex
	number int64
	by     map[K]V
}

// Get returns the handle of a key as of a change. One that is not there is made; one call
// of make or forget runs at a time.
func (k *Kept[K, V]) Get(number int64, key K, make func() V, forget func()) V {
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

// Renew forgets what was kept before a change.
func (k *Kept[K, V]) Renew(number int64, forget func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renew(number, forget)
}

func (k *Kept[K, V]) renew(number int64, forget func()) {
	if k.by == nil || k.number < number {
		k.by, k.number = map[K]V{}, number
		forget()
	}
}
