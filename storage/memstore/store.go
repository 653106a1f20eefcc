// Package memstore keeps a store in memory: a copy-on-write tree of the newest
// records and a bounded log of the commits that led to it.
//
// Reads of an older revision undo the commits after it, on a copy that shares
// what did not change. The store starts no goroutine and works inside a
// testing/synctest bubble.
//
// A commit compares, writes the tree and appends to the log under Store.mu, held for
// writing: so commits are in one order, and revision, tree and the log's end fit each
// other for whoever holds it. The log's own lock comes after it; watches take that one
// alone, so they never wait for a read. A scan holds no lock while its caller takes
// records: it runs over a tree that nobody writes any more, as a later commit writes a
// copy of what it touches.
package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/internal/history"
)

// Options say how much history a Store keeps. Whichever bound is met first
// counts; the newest records are always kept.
type Options struct {
	// Retain is how long a replaced record stays readable; 0 means 5 minutes,
	// less than 0 forever.
	Retain time.Duration
	// MaxEvents bounds the commits kept; 0 means 65,536, less than 0 no bound.
	MaxEvents int
	// MaxBytes bounds the bytes of the commits kept; 0 means 64 MiB, less than
	// 0 no bound.
	MaxBytes int
}

func (o Options) limits() eventlog.Limits {
	l := eventlog.Limits{Age: o.Retain, Events: o.MaxEvents, Bytes: int64(o.MaxBytes)}
	if l.Age == 0 {
		l.Age = 5 * time.Minute
	}
	if l.Events == 0 {
		l.Events = 1 << 16
	}
	if l.Bytes == 0 {
		l.Bytes = 64 << 20
	}
	return l
}

type tree = btree.Map[string, storage.Record]

// root is the whole store at one revision. Its tree is never written.
type root struct {
	revision storage.Revision
	tree     *tree
}

// maxRoots bounds the old roots kept for repeated reads of one revision.
const maxRoots = 8

// Store is a storage.Backend in memory. It also implements storage.Stamper.
type Store struct {
	log *history.Log

	mu       sync.RWMutex
	tree     *tree
	revision storage.Revision
	newest   *root  // of revision, if somebody asked for it
	old      []root // least recently used first
	stamps   map[string]string
	closed   bool
}

var (
	_ storage.Backend = (*Store)(nil)
	_ storage.Stamper = (*Store)(nil)
)

// New makes an empty store.
func New(o Options) *Store {
	return &Store{
		log:    history.New(0, o.limits()),
		tree:   new(tree),
		stamps: make(map[string]string),
	}
}

// Fork returns an independent copy of the store as it is now, with its
// history, in time that does not depend on the number of records. What is
// written to one is not seen by the other. A fork of a closed store is closed.
func (s *Store) Fork() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Store{
		log:      s.log.Fork(),
		tree:     s.tree.Copy(),
		revision: s.revision,
		stamps:   make(map[string]string, len(s.stamps)),
		closed:   s.closed,
	}
	for name, value := range s.stamps {
		f.stamps[name] = value
	}
	return f
}

// Revision returns the newest revision.
func (s *Store) Revision(ctx context.Context) (storage.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, storage.ErrClosed
	}
	return s.revision, nil
}

// Stamp implements storage.Stamper.
func (s *Store) Stamp(ctx context.Context, name, value string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", storage.ErrClosed
	}
	if have, ok := s.stamps[name]; ok {
		return have, nil
	}
	s.stamps[name] = value
	return value, nil
}

// Close ends watches. Everything else fails with storage.ErrClosed from then on.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.old, s.newest = nil, nil
	s.mu.Unlock()
	s.log.Close()
	return nil
}
