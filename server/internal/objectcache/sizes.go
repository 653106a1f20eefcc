package objectcache

import (
	"strings"
	"sync"
)

// sizes counts the bytes of the current objects.
type sizes struct {
	mu    sync.Mutex       // guards the fields below
	by    map[string]int64 // by namespace; "" is for cluster-scoped objects
	total int64
}

// StoredBytes returns the number of bytes that the objects of a namespace, and all objects, use in the store,
// including their keys. Reservations do not count, because their number is bounded by the objects that hold them.
func (s *Set) StoredBytes(namespace string) (here, total int64) {
	s.sizes.mu.Lock()
	defer s.sizes.mu.Unlock()
	return s.sizes.by[namespace], s.sizes.total
}

// count adds the difference between an object and its replacement. old or now may be nil.
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
