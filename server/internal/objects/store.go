// Package objects is the engine of a server: it reads, writes and deletes the
// objects of every type, gives out values that must be unique, and keeps objects
// out of namespaces that go. It knows nothing of HTTP: the handlers of requests,
// the client of the server's own parts and, through that, its controllers stand on
// it as equals.
//
// A [Store] is used by any number of goroutines at once.
//
// # What keeps objects right
//
// The backend's comparison alone: a write looks at an object, makes a new one of it,
// and commits that on the condition that the object is still the one that it looked at
// (Store.Write); values that only one object may hold are records in the same commit
// (Store.reservations). Everything kept in memory is there to fail rarely and early:
// turns, so that writers of one key do not undo each other's attempts; allocator, to
// choose a value that is likely free; usage, to bound what this server lets in. Another
// server over the same store knows nothing of them, and need not.
//
// A look begins with CatchUp, so it sees every commit that was acknowledged before. A
// write is answered when the cache shows it, so whoever was answered sees it, by
// whatever way he reads. A commit that has begun is not ended by a caller who goes
// away, but by Options.RequestTime.
//
// Objects that come from the cache are shared and never changed; the one that Mutate
// makes is the write's own until it is stored.
//
// # Locks
//
// turns.mu, usage.mu and that of an allocator are never held together, nor while the
// store, admission or another writer is waited for. Under an allocator's lock a kind
// chooses values (registry.Pool.Allot) and the cache is looked at; under that of usage
// the hub's count is. What a write claims or takes up there is given back after the cache
// shows it, or after it failed: so between the two nothing looks free that is taken.
package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// Options are what a Store works with. All but the bounds in bytes must be set.
type Options struct {
	Names     names.Profile
	Records   *Records
	Hub       *watch.Hub // over Records.Store
	Types     func() *resource.State
	Admission *admission.Chain
	Log       *slog.Logger

	Waited func(time.Duration) // is told how long reads waited for the caches, if they had to; nil: nobody is

	RequestTime    time.Duration // of a commit, and of a call of the client
	FutureWait     time.Duration // for a version that is not there yet
	NamespaceBytes int64         // of the objects of one namespace; 0: any
	StoreBytes     int64         // of all objects; 0: any
}

// Store reads and writes objects.
type Store struct {
	o          Options
	backend    storage.Backend                   // Records.Store
	allocators map[meta.GroupResource]*allocator // of the types that need one
	usage      usage
	turns      turns
	encodings  sync.Pool // of *[]byte, room to encode in
}

// New returns a store over what the options hold; types are those that are there
// from the start.
func New(o Options, types []*resource.Type) *Store {
	s := &Store{o: o, backend: o.Records.Store(), allocators: map[meta.GroupResource]*allocator{}}
	for _, t := range types {
		o.Hub.Cache(t.GroupResource()).Index(t.Fields...)
		if p := newAllocator(o.Hub, t); p != nil {
			s.allocators[t.GroupResource()] = p
		}
	}
	return s
}

// Caller is on whose behalf something is done.
type Caller struct {
	User  *auth.User
	Notes Notes

	// Allow asks for the right to a verb on the same object, where a request turns
	// out to be more than it was allowed as; nil: everything is allowed.
	Allow func(ctx context.Context, verb string) error
}

// Notes take what a caller is told besides the result. They are called by several
// goroutines at once.
type Notes interface {
	Warn(text string)
	Annotate(key, value string)              // in the audit event
	AnnotateExternal(key, value string) bool // see admission.Request
}

func (c *Caller) allow(ctx context.Context, verb string) error {
	if c.Allow == nil {
		return nil
	}
	return c.Allow(ctx, verb)
}

// UID returns the uid of an object from the store itself, whether its type is served or not;
// "" if there is no such object.
func (s *Store) UID(ctx context.Context, r meta.GroupResource, key meta.Key) (string, error) {
	rec, err := s.backend.Get(ctx, resource.StorageKey(r, key), 0)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var stored struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(rec.Value, &stored); err != nil || stored.Metadata.UID == "" {
		return "", fmt.Errorf("what is stored as %s %s cannot be read: %w", r, key, cmp.Or(err, errors.New("it has no uid")))
	}
	return stored.Metadata.UID, nil
}
