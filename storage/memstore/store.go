// Package memstore implements storage.Backend in memory, with a copy-on-write tree of the newest
// records and a bounded log of recent commits.
//
// To read an older revision, the store copies the tree, which shares the unchanged nodes, and undoes
// the later commits on the copy. The store starts no goroutine and works inside a testing/synctest
// bubble.
//
// # Locking
//
// Commit holds Store.mu for writing while it compares revisions, writes the tree and appends to the
// log. Commits are therefore totally ordered, and Store.revision, Store.tree and the end of the log
// are consistent for a holder of Store.mu. The lock of the log is acquired after Store.mu. Watches
// acquire only the lock of the log, so they never wait for reads. A scan holds no lock while its
// caller consumes records: it iterates over a tree that is never written again, because later commits
// copy the nodes that they change.
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

// Options limit the history that a Store keeps. The strictest limit applies. The newest records are
// always kept.
type Options struct {
	// Retain is how long a replaced record stays readable. 0 means 5 minutes; a negative value means
	// forever.
	Retain time.Duration
	// MaxEvents limits the number of events in the history. 0 means 65,536; a negative value means no
	// limit.
	MaxEvents int
	// MaxBytes limits the size of the history in bytes. 0 means 64 MiB; a negative value means no
	// limit.
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

// root is the content of the store at one revision. Its tree is immutable.
type root struct {
	revision storage.Revision
	tree     *tree
}

// maxRoots limits the number of roots that are cached for repeated reads of old revisions.
const maxRoots = 8

// Store is a storage.Backend in memory. It also implements storage.Importer and storage.StampReader.
type Store struct {
	log *history.Log // has its own lock

	mu       sync.RWMutex // guards the fields below
	tree     *tree        // the newest records
	revision storage.Revision
	newest   *root  // cached root of revision, nil until a scan needs it
	old      []root // cached roots of older revisions, least recently used first
	stamps   map[string]string
	closed   bool
}

var (
	_ storage.Backend = (*Store)(nil)
	_ storage.Stamper = (*Store)(nil)
)

// New returns an empty store.
func New(o Options) *Store {
	return &Store{
		log:    history.New(0, o.limits()),
		tree:   new(tree),
		stamps: make(map[string]string),
	}
}

// Fork returns an independent copy of the store with its history. Later writes to one of them are not
// visible in the other. The time that Fork takes does not depend on the number of records. A fork of a
// closed store is closed.
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

// Revision implements storage.Backend.
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

// Close implements storage.Backend. Watches yield storage.ErrClosed and end.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.old, s.newest = nil, nil
	s.mu.Unlock()
	s.log.Close()
	return nil
}
