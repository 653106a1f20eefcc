package watch

import (
	"strings"
	"sync"
)

// held counts the bytes of the objects that there are.
type held struct {
	mu    sync.Mutex
	by    map[string]int64 // namespace; "" is objects in none
	total int64
}

// Held returns how many bytes the objects of a namespace take in the store, keys
// and values, and all objects of types. Reservations do not count: the objects that hold
// them bound their number.
func (h *Hub) Held(namespace string) (here, total int64) {
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	return h.held.by[namespace], h.held.total
}

// count takes in that an object is e now instead of old; nil is not there.
func (h *held) count(prefix, key string, old, e *Entry) {
	namespace, _, _ := strings.Cut(key, "/")
	bytes := int64(0)
	if old != nil {
		bytes -= int64(len(prefix)+len(key)) + old.StoredBytes()
	}
	if e != nil {
		bytes += int64(len(prefix)+len(key)) + e.StoredBytes()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total += bytes
	n, known := h.by[namespace]
	switch n += bytes; {
	case n == 0:
		delete(h.by, namespace)
	case !known:
		h.by[strings.Clone(namespace)] = n // the key may be a part of something larger
	default:
		h.by[namespace] = n
	}
}
