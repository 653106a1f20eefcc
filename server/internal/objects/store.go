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
// (Store.reservations). What admission counts it takes before the commit, which depends on the
// fence of the namespace that was there before (Store.Fence): who counts anew raises that, and
// nothing comes that he does not see. Everything kept in memory is there to fail rarely and early:
// turns, so that writers of one key do not undo each other's attempts; allocator, to
// choose a value that is likely free; usage, to bound what this server lets in. Another
// server over the same store knows nothing of them, and need not.
//
// A look begins with CatchUp, so it sees every commit that was acknowledged before the
// request came, and after a conflict what that found (ReadIndex). A write is answered when the cache shows it, so whoever was answered sees it, by
// whatever way he reads. A commit that has begun is not ended by a caller who goes
// away, but by Options.RequestTime.
//
// Objects that come from the cache are shared and never changed; the one that Mutate
// makes is the write's own until it is stored.
//
// # Records
//
// Everything above [Records] sees objects of the hub, the version of a kind that all others
// are converted through, as today's type has it. Below it stands whatever was written, by
// whichever release, in whichever version. A record is the JSON of an object, a newline and
// a signature: the shape of the type that wrote it, which is a hash of all that decides what
// reading makes of an object (resource.Type.Shape).
//
//   - A record of the type's own shape was encoded by this very type. It is read as it
//     stands, or converted if it is in another version than the hub.
//   - Every other record is fitted: brought up to date (registry's Upgrade), converted, and
//     rid of fields that the type does not have and of values that are not of their type.
//     Fitting changes what is shown, not what is stored.
//
// So a record says by itself how it is to be read. Nothing about all records of a kind is
// remembered, which servers of several releases would have to keep in step.
//
// A write signs its record, unless that takes the place of one that holds more than the type
// shows. What is more stays then: the record keeps its version, the unshown fields are
// merged in, and it has no signature, since the type does not vouch for all of it. If that
// version cannot say what changed, the write is refused (record.refusal).
//
// The storage version may say less than the hub. The object of the hub then goes into an
// annotation beside it, its form (names.HubForm), with a hash of what the version said: the
// form is the object as long as the hash is right, and takes in what was changed since by a
// release that does not know it. Forms of hubs that only a newer release has stay as they
// are.
//
// Values of reservations, objects of definitions and the record of who served the store
// (resource.KindsKey) are not signed. That last one is for starting alone: fields that a
// type does not have are no reason to refuse a store which a release of the same shape has
// served before (Records.Accept).
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
	"orch.io/controlplane/internal/readindex"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Options are what a Store works with. All but the bounds in bytes must be set.
type Options struct {
	Names     names.Profile
	Records   *Records
	Hub       *objectcache.Set // over Records.Store
	Types     func() *resource.State
	Admission *admission.Chain
	Log       *slog.Logger

	// Audit begins the audit of a write of a built-in controller. It returns the collector of the write's
	// annotations and a function to call when the write has ended. nil: such writes are not audited.
	Audit func(*Write) (Notes, func(Audited))

	Waited func(time.Duration) // called with the time for which a read waited for the caches; may be nil

	RequestTime    time.Duration // of a commit, and of a call of the client
	FutureWait     time.Duration // for a version that is not there yet
	ObjectBytes    int64         // of one object; 0: any
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
	encodings  sync.Pool     // of *[]byte, room to encode in
	index      readindex.Key // see CatchUp
}

// New returns a store over what the options hold; types are those that are there
// from the start.
func New(o Options, types []*resource.Type) *Store {
	s := &Store{o: o, backend: o.Records.Store(), allocators: map[meta.GroupResource]*allocator{}}
	for _, t := range types {
		Index(o.Hub, t)
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
