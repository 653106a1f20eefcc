package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

// SharedStore is a store that several servers use. Closing it leaves the wrapped store
// open.
type SharedStore struct{ storage.Backend }

// Shared reports that other servers may use the store.
func (SharedStore) Shared() bool { return true }

// Close does nothing.
func (SharedStore) Close() error { return nil }

// OnStores runs a test in parallel over each store that is part of this module. The
// server under test closes the store.
func OnStores(t *testing.T, test func(t *testing.T, store storage.Backend)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, memstore.New(memstore.Options{}))
	})
	t.Run("badger", func(t *testing.T) {
		t.Parallel()
		test(t, OpenBadger(t, t.TempDir()))
	})
}

// OpenBadger opens a Badger store in dir.
func OpenBadger(t testing.TB, dir string) *badgerstore.Store {
	store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.NoError(t, err)
	return store
}

// WithStorage configures a server that uses store.
func WithStorage(store storage.Backend) func(*server.Builder) {
	return func(b *server.Builder) { b.Storage = store }
}

// StoredObject decodes the stored record at key.
func StoredObject(t *testing.T, store *memstore.Store, key string) map[string]any {
	t.Helper()
	rec, err := store.Get(t.Context(), key, 0)
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.NewDecoder(bytes.NewReader(rec.Value)).Decode(&tree)) // ignores the signature
	return tree
}

// CountingStore records the calls of Revision that a request of CountRevisions causes.
type CountingStore struct{ SharedStore }

// revisionCalls holds the stacks of the calls of Revision for a request. It is in the context of
// the request.
type revisionCalls struct {
	mu     sync.Mutex
	stacks []string
}

type revisionCallsKey struct{}

// Revision implements storage.Backend.
func (s CountingStore) Revision(ctx context.Context) (storage.Revision, error) {
	if a, ok := ctx.Value(revisionCallsKey{}).(*revisionCalls); ok {
		a.mu.Lock()
		a.stacks = append(a.stacks, string(debug.Stack()))
		a.mu.Unlock()
	}
	return s.SharedStore.Revision(ctx)
}

// CountRevisions sends a request to a server over a CountingStore. It returns the code of
// the response and the stack of each call of Revision until the end of the response, or
// until the header if the request is a watch.
func CountRevisions(t *testing.T, by *Client, method, path, body string, headers ...string) (code int, stacks []string) {
	t.Helper()
	a := &revisionCalls{}
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), revisionCallsKey{}, a), Timeout)
	defer cancel()
	res := by.Open(ctx, method, path, body, headers...)
	if !strings.Contains(path, "watch=1") {
		_, err := io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
	}
	require.NoError(t, res.Body.Close())
	a.mu.Lock()
	defer a.mu.Unlock()
	return res.StatusCode, a.stacks
}

// BlockingStore blocks the first commit that writes a key until Release is closed.
// Between the arrival of that commit and its end, watches deliver no event.
type BlockingStore struct {
	storage.Backend
	key     string
	once    sync.Once
	Arrived chan struct{} // closed when the commit arrives
	Release chan struct{} // the test closes it to let the commit continue
	made    chan struct{} // closed when the commit has ended
}

// NewBlockingStore returns a BlockingStore that blocks the first commit of key.
func NewBlockingStore(b storage.Backend, key string) *BlockingStore {
	return &BlockingStore{Backend: b, key: key, Arrived: make(chan struct{}), Release: make(chan struct{}), made: make(chan struct{})}
}

// Close does nothing.
func (*BlockingStore) Close() error { return nil }

// Commit implements storage.Backend.
func (h *BlockingStore) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if slices.ContainsFunc(ws, func(w storage.Write) bool { return w.Key == h.key }) {
		first := false
		h.once.Do(func() { first = true })
		if first {
			close(h.Arrived)
			<-h.Release
			defer close(h.made)
		}
	}
	return h.Backend.Commit(ctx, ws...)
}

// Watch implements storage.Backend.
func (h *BlockingStore) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for events, err := range h.Backend.Watch(ctx, prefix, after) {
			select {
			case <-h.Arrived:
				select {
				case <-h.made:
				case <-ctx.Done():
				}
			default:
			}
			if !yield(events, err) {
				return
			}
		}
	}
}

// OnSharedStores runs a test over a memory store and a Badger store that stay open
// until the end of the test, so that several servers can use them.
func OnSharedStores(t *testing.T, test func(*testing.T, storage.Backend)) {
	t.Run("memory", func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		t.Cleanup(func() { _ = store.Close() })
		test(t, store)
	})
	t.Run("badger", func(t *testing.T) {
		store := OpenBadger(t, t.TempDir())
		t.Cleanup(func() { _ = store.Close() })
		test(t, store)
	})
}

// LaggingStore is a store with watches that can lag behind: after Lag they deliver no event
// until the server revisionCalls for the newest revision.
type LaggingStore struct {
	*faultinject.Store

	mu   sync.Mutex
	held chan struct{} // closed to deliver events; nil if events are not held back
}

// newLaggingStore wraps b, which stays open when the result is closed.
func newLaggingStore(b storage.Backend) *LaggingStore {
	l := &LaggingStore{}
	l.Store = faultinject.Wrap(KeepOpen{b}, func(c faultinject.Call) faultinject.Fault {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.held != nil && c.Op == faultinject.OpEvent:
			return faultinject.Fault{Wait: l.held}
		case l.held != nil && c.Op == faultinject.OpRevision:
			close(l.held)
			l.held = nil
		}
		return faultinject.Fault{}
	})
	return l
}

// Lag holds back events until the next call of Revision.
func (l *LaggingStore) Lag() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

// CatchUp delivers the events that Lag holds back.
func (l *LaggingStore) CatchUp() { _, _ = l.Revision(context.Background()) }

// Lag holds back the events of the second server. It first waits until that server's controllers
// are idle, because they do not ask for the newest revision.
func (w *Pair) Lag() {
	w.Servers[1].Settle()
	w.LaggingStore.Lag()
}

// Pair is two servers over a store. The store of the second server can lag.
type Pair struct {
	*LaggingStore
	Servers [2]*servertest.Server
	A, B    *Client
}

// NewPair starts two servers over a memory store.
func NewPair(t *testing.T, configure ...func(*server.Builder)) *Pair {
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w := &Pair{LaggingStore: newLaggingStore(store)}
	for i, b := range []storage.Backend{KeepOpen{store}, w.LaggingStore} {
		w.Servers[i] = servertest.New(t, append([]func(*server.Builder){WithStorage(b)}, configure...)...)
	}
	w.A, w.B = InProcess(t, w.Servers[0]), InProcess(t, w.Servers[1])
	return w
}

// KeepOpen is a store that outlives its server: closing it does nothing.
type KeepOpen struct{ storage.Backend }

// Close does nothing.
func (KeepOpen) Close() error { return nil }
