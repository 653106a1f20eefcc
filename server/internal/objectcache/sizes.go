package objectcache

import (
	"strings"
	"sync"
)

// sizes counts the bytes of the current objects.
type sizes struct {
	mu    sync.Mutex
	by    map[string]int64 // by namespace; "" has the objects without one
	total int64
}

// StoredBytes returns how many bytes the objects of a namespace, and all objects, take in
// the store, keys and values. Reservations do not count, because the objects that hold them
// bound their number.
func (s *Set) StoredBytes(namespace string) (here, total int64) {
	s.sizes.mu.Lock()
	defer s.sizes.mu.Unlock()
	return s.sizes.by[namespace], s.sizes.total
}

// count counts the replacement of an object; nil is none.
func (s *sizes) count(prefix string, old, now *Entry) {
	bytes, key := int64(0), ""
	if old != nil {
		key = old.key
		bytes -= int64(len(prefix)+len(key)) + old.StoredBytes()
	}
	if now != nil {
		key = now.key
		bytes += int64(len(prefix)+len(key)) + now.StoredBytes()
	}
	namespace, _, _ := strings.Cut(key, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += bytes
	n, known := s.by[namespace]
	switch n += bytes; {
	case n == 0:
		delete(s.by, namespace)
	case !known:
		s.by[strings.Clone(namespace)] = n // the key may be a part of a larger string
	default:
		s.by[namespace] = n
	}
}
