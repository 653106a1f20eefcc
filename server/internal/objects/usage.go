package objects

import (
	"fmt"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// usage enforces Options.NamespaceBytes and Options.StoreBytes. The caches count the stored objects. usage counts the
// growth of writes under way until the caches show them, so that concurrent writes cannot exceed the limits. For a
// moment a write may be counted twice. An object counts with its size in the hub version; its record may be up to
// three times as large.
type usage struct {
	mu      sync.Mutex       // guards the fields below
	pending map[string]int64 // growth in bytes, by namespace
	total   int64            // sum of pending
}

// allow reserves the bytes by which a write makes the store grow. The caller must call release after the caches show
// the write or it has failed. A write that does not grow its object, or begins a deletion, always passes. An object
// that is too large by itself is refused first, see checkSize.
func (s *Store) allow(w *Write, change storage.Write, obj *meta.Object, old *objectcache.Entry) (release func(), err error) {
	if err := s.checkSize(w, change, obj, old); err != nil {
		return nil, err
	}
	perNamespace, all := s.o.NamespaceBytes, s.o.StoreBytes
	grown := int64(len(change.Key) + len(change.Value))
	if old != nil {
		grown -= int64(len(change.Key)) + old.StoredBytes()
	}
	if perNamespace <= 0 && all <= 0 || grown <= 0 || beginsDeletion(obj, old) {
		return func() {}, nil
	}
	a, namespace := &s.usage, w.Key.Namespace
	a.mu.Lock()
	defer a.mu.Unlock()
	here, total := s.o.Hub.StoredBytes(namespace)
	here, total = here+a.pending[namespace], total+a.total
	switch {
	case all > 0 && total+grown > all:
		return nil, meta.InsufficientStorage("the storage of the server has no room: requested: %d bytes, used: %d, limited: %d; only deletions and changes that make objects smaller are accepted", grown, total, all)
	case perNamespace > 0 && namespace != "" && here+grown > perNamespace:
		return nil, meta.Forbidden(w.Version.Resource().GroupResource(), w.Key.Name,
			fmt.Sprintf("exceeded quota: bytes of the namespace, requested: bytes=%d, used: bytes=%d, limited: bytes=%d", grown, here, perNamespace))
	}
	a.add(namespace, grown)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.add(namespace, -grown)
	}, nil
}

// beginsDeletion reports whether a write marks the object as being deleted.
func beginsDeletion(obj *meta.Object, old *objectcache.Entry) bool {
	return old != nil && obj.Terminating() && !old.Object().Terminating()
}

// checkSize returns an error for an object that is larger than Options.ObjectBytes. A write that makes the object
// smaller passes, and so does the beginning of a deletion. Otherwise an object from before the limit was set could
// not be repaired or deleted.
func (s *Store) checkSize(w *Write, change storage.Write, obj *meta.Object, old *objectcache.Entry) error {
	size := int64(len(change.Value))
	switch {
	case s.o.ObjectBytes <= 0 || size <= s.o.ObjectBytes:
		return nil
	case old != nil && size < old.StoredBytes(), beginsDeletion(obj, old):
		return nil
	case w.Version.Rules.Has(compat.EtcdTooLarge):
		if w.DryRun {
			return nil
		}
		return meta.Failure(500, "", "etcdserver: request is too large")
	}
	return meta.TooLarge("the stored object would have %d bytes, the limit is %d", size, s.o.ObjectBytes)
}

// add adds bytes to the growth in a namespace. The caller holds mu.
func (a *usage) add(namespace string, bytes int64) {
	if a.pending == nil {
		a.pending = make(map[string]int64)
	}
	a.total += bytes
	if a.pending[namespace] += bytes; a.pending[namespace] == 0 {
		delete(a.pending, namespace)
	}
}
