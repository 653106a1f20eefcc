package watch

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/storage"
)

// Options configure a CacheSet. All fields but Entry are optional.
type Options[V Entry] struct {
	// Entry returns the entry of a record. Its Key is the key within the cache. The
	// result may keep the record's value, which must not be modified. Entry is called
	// concurrently. It must not fail: if a value cannot be decoded, the entry itself
	// must represent that.
	Entry func(storage.Record) V

	// Split divides a storage key into the prefix of its cache and the key within the
	// cache; both together must be the storage key. No prefix may begin with another
	// prefix. If ok is false, the key is in no cache. By default the prefix ends after the
	// first slash, and keys without a slash are in no cache. If Split always returns the
	// empty prefix, all keys are in the same cache.
	Split func(storageKey string) (prefix, key string, ok bool)

	// Replaced is called when the current entry of a key changes from old to now; the zero
	// value means no record. It runs under the lock of the cache, before any reader sees the
	// change. For the keys of the same cache it is called in the order of the commits. It
	// must not call the CacheSet or its caches.
	Replaced func(prefix string, old, now V)

	// Retain is how long the events and the older states of a cache stay readable, by
	// the rule of storage.Retention; 5 minutes by default. A state that is no longer in
	// memory is read from the backend, if the backend still has it.
	Retain time.Duration
	// MaxEvents bounds the events in memory for each cache; 65,536 by default.
	MaxEvents int
	// MaxBytes bounds the bytes of replaced records that the events of all caches keep in
	// memory, and separately the bytes that the snapshots of each cache keep; 32 MiB by
	// default.
	MaxBytes int64
	// MaxSnapshots bounds the snapshots of each cache that are kept for further pages of
	// a list; 64 by default.
	MaxSnapshots int

	// OnPanic is called with the value of a panic in the backend while the CacheSet
	// follows it, by the deferred function that recovers it.
	OnPanic func(p any)
	// OnCommit is called after each commit that the caches show, before they show the
	// next commit.
	OnCommit func()
}

func (o Options[V]) withDefaults() Options[V] {
	if o.Split == nil {
		o.Split = splitAfterSlash
	}
	if o.Replaced == nil {
		o.Replaced = func(string, V, V) {}
	}
	if o.Retain <= 0 {
		o.Retain = 5 * time.Minute
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 1 << 16
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 32 << 20
	}
	if o.MaxSnapshots <= 0 {
		o.MaxSnapshots = 64
	}
	if o.OnPanic == nil {
		o.OnPanic = func(any) {}
	}
	if o.OnCommit == nil {
		o.OnCommit = func() {}
	}
	return o
}

func splitAfterSlash(storageKey string) (prefix, key string, ok bool) {
	i := strings.IndexByte(storageKey, '/') + 1
	return storageKey[:i], storageKey[i:], i > 0
}

// CacheSet follows a backend and holds its records in a Cache for each key prefix.
// All methods are safe for concurrent use.
type CacheSet[V Entry] struct {
	backend   storage.Backend
	historian storage.HistoryReader // nil if the backend does not implement it
	follower  follower              // nil if the backend does not implement it
	options   Options[V]
	cancel    context.CancelFunc
	done      chan struct{} // closed when the goroutine has ended

	revision atomic.Int64 // all caches show it; written under the lock of waits
	closed   atomic.Bool  // set once, before all waiters are released for good

	caches struct { // only grows, so a *Cache stays valid without the lock
		sync.RWMutex
		base storage.Revision // prefixes without a cache have had no records since then
		by   map[string]*Cache[V]
		list []*Cache[V] // in the order of creation
	}
	waits struct { // callers of Wait and feeds; waiting cursors are in their Cache
		sync.Mutex
		gates gateHeap
		by    map[storage.Revision]*gate
		feeds []*feedWait[V]
	}
	kept      int64        // bytes in all logs; owned by the goroutine
	keptBytes atomic.Int64 // copy of kept for other goroutines
	swept     time.Time    // owned by the goroutine
}

// follower is an optional interface of a backend. Follow is Watch of all keys without
// Event.Prev, for a backend that would have to convert the old records. A CacheSet
// has the old entries itself.
type follower interface {
	Follow(ctx context.Context, after storage.Revision) iter.Seq2[[]storage.Event, error]
}

// Open reads all records of the backend and follows it until Close. The context applies
// to the reading only. The caller closes the backend, after the CacheSet. Open fails if
// the records cannot be read, but not if single records are damaged, see Cache.Damaged.
func Open[V Entry](ctx context.Context, b storage.Backend, o Options[V]) (*CacheSet[V], error) {
	if o.Entry == nil {
		return nil, errors.New("watch: Options.Entry is not set")
	}
	s := &CacheSet[V]{backend: b, options: o.withDefaults(), done: make(chan struct{})}
	s.historian, _ = b.(storage.HistoryReader)
	s.follower, _ = b.(follower)
	s.caches.by = make(map[string]*Cache[V])
	s.waits.by = make(map[storage.Revision]*gate)
	rev, records, err := b.Scan(ctx, "", "", 0)
	if err != nil {
		return nil, fmt.Errorf("reading all records: %w", err)
	}
	s.caches.base = rev
	for rec, err := range records {
		if _, _, damaged := s.noteDamage(err); damaged {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading all records: %w", err)
		}
		if c, key := s.cacheOf(rec.Key); c != nil {
			c.load(key, s.entry(key, rec))
		}
	}
	s.revision.Store(int64(rev))
	follow, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go s.follow(follow)
	return s, nil
}

// entry returns a new entry of a record.
func (s *CacheSet[V]) entry(key string, r storage.Record) V {
	r.Key = key
	return s.options.Entry(r)
}

// Close ends all cursors, feeds and waits with storage.ErrClosed and waits for the
// goroutine to end. It returns nil. The backend stays open.
func (s *CacheSet[V]) Close() error {
	s.cancel()
	<-s.done
	return nil
}

// Revision returns the newest revision that all caches show.
func (s *CacheSet[V]) Revision() storage.Revision { return storage.Revision(s.revision.Load()) }

// Cache returns the cache of a key prefix, as Options.Split returns it. Each
// call returns the same cache. The cache may be empty.
func (s *CacheSet[V]) Cache(prefix string) *Cache[V] {
	s.caches.RLock()
	c := s.caches.by[prefix]
	s.caches.RUnlock()
	if c != nil {
		return c
	}
	s.caches.Lock()
	defer s.caches.Unlock()
	if c = s.caches.by[prefix]; c == nil {
		c = newCache(s, strings.Clone(prefix), s.caches.base)
		s.caches.by[c.prefix] = c
		s.caches.list = append(s.caches.list, c)
	}
	return c
}

// Caches returns the caches of all prefixes that have records, had records since Open,
// or were asked for with Cache. The slice must not be modified.
func (s *CacheSet[V]) Caches() []*Cache[V] {
	s.caches.RLock()
	defer s.caches.RUnlock()
	return s.caches.list[:len(s.caches.list):len(s.caches.list)]
}

// HistoryUsed returns the used fraction of Options.MaxBytes for the events in memory.
func (s *CacheSet[V]) HistoryUsed() float64 {
	return float64(s.keptBytes.Load()) / float64(s.options.MaxBytes)
}

// cacheOf returns the cache of a storage key and the key within it, or nil if the key is
// in no cache.
func (s *CacheSet[V]) cacheOf(storageKey string) (*Cache[V], string) {
	prefix, key, ok := s.options.Split(storageKey)
	if !ok {
		return nil, ""
	}
	return s.Cache(prefix), key
}

// gate is the group of the callers of Wait for a revision.
type gate struct {
	revision storage.Revision
	members  int
	index    int // in the heap
	open     chan struct{}
}

// Wait returns nil when all caches show a revision. It fails with the error of
// the context if the context ends first, and with storage.ErrClosed after the CacheSet or
// the backend was closed.
func (s *CacheSet[V]) Wait(ctx context.Context, rev storage.Revision) error {
	if s.Revision() >= rev {
		return nil
	}
	g := s.enter(rev)
	if g == nil {
		return nil
	}
	select {
	case <-g.open:
		return nil
	case <-s.done:
		return storage.ErrClosed
	case <-ctx.Done():
		s.leave(g)
		return ctx.Err()
	}
}

// enter returns the gate of a revision, or nil if all caches show the revision already.
func (s *CacheSet[V]) enter(rev storage.Revision) *gate {
	s.waits.Lock()
	defer s.waits.Unlock()
	if s.Revision() >= rev {
		return nil
	}
	g := s.waits.by[rev]
	if g == nil {
		g = &gate{revision: rev, open: make(chan struct{})}
		s.waits.by[rev] = g
		heap.Push(&s.waits.gates, g)
	}
	g.members++
	return g
}

func (s *CacheSet[V]) leave(g *gate) {
	s.waits.Lock()
	defer s.waits.Unlock()
	if g.members--; g.members == 0 && s.waits.by[g.revision] == g {
		delete(s.waits.by, g.revision)
		heap.Remove(&s.waits.gates, g.index)
	}
}

// advance sets the revision that all caches show and opens the gates up to it.
func (s *CacheSet[V]) advance(rev storage.Revision) {
	s.waits.Lock()
	defer s.waits.Unlock()
	s.revision.Store(max(s.revision.Load(), int64(rev)))
	for len(s.waits.gates) > 0 && s.waits.gates[0].revision <= rev {
		g := heap.Pop(&s.waits.gates).(*gate)
		delete(s.waits.by, g.revision)
		close(g.open)
	}
}

// gateHeap implements heap.Interface; the smallest revision is on top.
type gateHeap []*gate

func (q gateHeap) Len() int           { return len(q) }
func (q gateHeap) Less(i, j int) bool { return q[i].revision < q[j].revision }
func (q gateHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *gateHeap) Push(x any) {
	g := x.(*gate)
	g.index = len(*q)
	*q = append(*q, g)
}

func (q *gateHeap) Pop() any {
	last := len(*q) - 1
	g := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return g
}
