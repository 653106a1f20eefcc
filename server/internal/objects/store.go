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
// The backend's comparisons alone. A write reads the live object, makes a new one, and commits it on condition that
// the record of the object is unchanged (Store.Write) and that each record is unchanged on which a step of the write
// depended: its preconditions (precondition.go). These are
//
//   - the objects that decided admission, such as the namespace, which must not be terminating;
//   - the fence of the namespace, for plugins that count objects: a plugin that counts anew raises the fence, so
//     that it has counted every write that was admitted before, or that write is never stored (Store.RaiseFence);
//   - the last write of each sequence that the write joins (sequence.go);
//   - the definition of the kind, for new objects and for those whose stored version changes (Store.asDefined);
//   - the reservations of values that only one object may hold, which the commit writes, too (Store.reserve);
//   - the term of the leader for which a controller writes (consistency.LeaderFence).
//
// If one has failed, the write is retried from the start, except that a changed object which the plugins accept is
// compared in its new revision, and that a lost leader is refused as unavailable (preconditionError).
//
// What is kept in memory only makes conflicts rare: writeQueues, so that writers of one key wait for each other;
// allocator, to choose a value that is likely free; usage, to bound what this server admits. Another server over the
// same store does not know it, and need not.
//
// A read begins with CatchUp, so it sees every commit that was acknowledged before the request came, and after a
// conflict the record that was found instead (consistency.ReadIndex). A write is acknowledged when the caches show
// it, so that its caller sees it in every read. A commit that has begun ends after Options.RequestTime, not with the
// caller's context.
//
// Objects from a cache are shared and never changed; the object that Mutate returns belongs to the write until it is
// stored.
//
// # Records
//
// Everything above [Records] sees objects of the hub, the version of a kind that all others
// are converted through, as today's type has it. Below it stands whatever was written, by
// whichever release, in whichever version. A record is the JSON of an object, a newline and
// a signature: the shape of the type that wrote it, which is a hash of all that decides what
// reading makes of an object (resource.Type.Fingerprint).
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
// annotation beside it, its form (wellknown.HubForm), with a hash of what the version said: the
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
// writeQueues.mu, usage.mu and the lock of an allocator are never held together, nor while waiting for the backend,
// admission or another writer. The lock of an allocator is held while a kind chooses values (registry.Allocator.Allocate) and
// the cache is read; that of usage while the hub's count is read. A write gives back its claim on a value, or on
// room, after the cache shows the object or the write has failed, so that nothing in use looks free in between.
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
	"orch.io/controlplane/internal/consistency"
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
	queues     writeQueues
	encodings  sync.Pool         // of *[]byte, room to encode in
	index      consistency.Store // see CatchUp
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
