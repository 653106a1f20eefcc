package objects

import (
	"fmt"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// usage holds objects to Options.NamespaceBytes and Options.StoreBytes. What
// there is, the caches count; what is being written is counted here until they
// show it, so that the bounds hold however many write at once. A write near a
// bound may meet one that is counted twice for a moment. What counts is the object as
// the hub has it, whichever version is stored: its record may be three times as large.
type usage struct {
	mu      sync.Mutex
	pending map[string]int64 // by namespace
	total   int64
}

// allow reserves the bytes by which a write makes the store grow, until release.
// What does not grow always passes, and so does the begin of a deletion.
func (s *Store) allow(w *Write, change storage.Write, obj *meta.Object, old *watch.Entry) (release func(), err error) {
	perNamespace, all := s.o.NamespaceBytes, s.o.StoreBytes
	grown := int64(len(change.Key) + len(change.Value))
	if old != nil {
		grown -= int64(len(change.Key)) + old.StoredBytes()
	}
	begins := old != nil && obj.Terminating() && !old.Object().Terminating()
	if perNamespace <= 0 && all <= 0 || grown <= 0 || begins {
		return func() {}, nil
	}
	a, namespace := &s.usage, w.Key.Namespace
	a.mu.Lock()
	defer a.mu.Unlock()
	here, total := s.o.Hub.Held(namespace)
	here, total = here+a.pending[namespace], total+a.total
	switch {
	case all > 0 && total+grown > all:
		return nil, meta.NoRoom("the storage of the server has no room: requested: %d bytes, used: %d, limited: %d; only deletions and changes that make objects smaller are taken", grown, total, all)
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

func (a *usage) add(namespace string, bytes int64) {
	if a.pending == nil {
		a.pending = make(map[string]int64)
	}
	a.total += bytes
	if a.pending[namespace] += bytes; a.pending[namespace] == 0 {
		delete(a.pending, namespace)
	}
}
