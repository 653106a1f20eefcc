// Package objects is the storage engine of a server: it reads, writes and deletes the objects of every type,
// allocates values that must be unique, and rejects new objects in a namespace that is being deleted. It does not
// depend on HTTP. The request handlers and the [Client], through which the server's controllers and other components
// work, are equal callers.
//
// A [Store] is safe for concurrent use.
//
// # Consistency
//
// Only the comparisons in the backend's commits keep objects consistent. A write reads the live object, makes a new
// object from it, and commits it on condition that the record of the object is unchanged (Store.Write) and that every
// record on which a step of the write depended is unchanged. These records are the preconditions of the write
// (precondition.go):
//
//   - the objects that decided admission, such as the namespace, which must not be terminating;
//   - the fence of the namespace, for plugins that count objects: a plugin raises the fence before it counts again. A
//     write that was admitted earlier is then either included in the count, or never stored (Store.RaiseFence);
//   - the last write of each sequence that the write joins (sequence.go);
//   - the definition of the kind, for new objects and for objects whose stored version changes
//     (Store.inStorageVersion);
//   - the reservations of values that only one object may hold, which the commit also writes (Store.reserve);
//   - the term of the leader for which a controller writes (consistency.LeaderFence).
//
// If a precondition fails, the write is retried from the start. There are two exceptions: if the plugins accept the
// new state of an object that decided admission, the commit alone is repeated with the new revision; and a write
// whose leader fence failed is refused as unavailable (preconditionError).
//
// The state in memory only makes conflicts rare. writeQueues lets the writers of one key wait for each other,
// allocator chooses a value that is probably free, and usage bounds the growth that this server admits. Servers that
// share a store do not share this state, and need not.
//
// A read begins with CatchUp, so it sees every commit that was acknowledged before the request arrived. After a
// conflict, the next read also sees the record that conflicted (consistency.ReadIndex). A write is acknowledged only
// after the caches show it, so its caller sees it in every later read. A commit that has begun is bounded by
// Options.RequestTime, and is not interrupted when the caller's context ends.
//
// Objects from a cache are shared and must not be modified. The object that Mutate returns belongs to the write until
// it is stored.
//
// # Records
//
// The code above [Records] sees only objects in the hub version, the version of a kind through which all others are
// converted, as the current type defines it. The code below sees each record as some release wrote it, in some
// version. A record is the JSON of an object, a newline and a signature. The signature is the shape of the type that
// wrote the record: a hash of everything that determines how a stored object is read (resource.Type.Fingerprint).
//
//   - If a record has the shape of the current type, this type encoded it. It is used unchanged, or converted if it
//     is in another version than the hub.
//   - Every other record is fitted: it is upgraded by the registry's Upgrade function and converted, and fields that
//     the type does not have, and values of the wrong type, are removed. Fitting changes the result of the read, not
//     the stored record.
//
// So each record states by itself how it must be read. No state about all records of a kind is kept, because servers
// of different releases would have to keep it in agreement.
//
// A write signs its record, unless it replaces a record with unshown data, which is data that the type does not show.
// Unshown data is kept: the record stays in its version, the unshown data is merged into it, and it is not signed,
// because the type did not write all of it. If that version cannot represent the change, the write is refused
// (record.refusal).
//
// The storage version may represent less than the hub. In that case the record also has a hub copy: the object in the
// hub version, in an annotation (wellknown.HubForm), with a hash of the object in the storage version. As long as the
// hash matches, a read returns the copy. Otherwise a release that does not know this hub has written the object
// since, and a read merges its changes into the copy. A copy in a hub version that only a newer release has is kept
// unchanged.
//
// The values of reservations, the objects of definitions, and the record of the releases that served the store
// (resource.KindsKey) are not signed. The last one is read only when a server starts: fields that a type does not
// have do not keep a server from starting if a release of the same shape has served the store before
// (Records.Accept).
//
// # Locks
//
// writeQueues.mu, usage.mu and the lock of an allocator are never held together, nor while waiting for the backend,
// admission or another writer. The lock of an allocator is held while the kind chooses values (registry.Allocator.Allocate)
// and the cache is read. usage.mu is held while the byte count of the cache set is read. A write releases its claim
// on a value, or on bytes, only after the cache shows the object or the write has failed, so that nothing in use
// looks free in between.
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

// Options configure a Store. All fields except Audit, Waited and the byte limits must be set.
type Options struct {
	Names     names.Profile
	Records   *Records
	Hub       *objectcache.Set // over Records.Store
	Types     func() *resource.State
	Admission *admission.Chain
	Log       *slog.Logger

	// Audit begins the audit of a write of a built-in controller. It returns the collector of the write's annotations
	// and a function that must be called when the write has ended. If Audit is nil, such writes are not audited.
	Audit func(*Write) (Notes, func(Audited))

	Waited func(time.Duration) // called with the time that a read waited for the caches; may be nil

	RequestTime    time.Duration // limit for a commit, and for a call of Client
	FutureWait     time.Duration // how long a read waits for a revision that the caches do not show yet
	ObjectBytes    int64         // limit for one object; 0: none
	NamespaceBytes int64         // limit for the objects of one namespace; 0: none
	StoreBytes     int64         // limit for all objects; 0: none
}

// Store reads and writes the objects of all types. It is safe for concurrent use.
type Store struct {
	o          Options
	backend    storage.Backend                   // Records.Store
	allocators map[meta.GroupResource]*allocator // by type, for types with unique values
	usage      usage
	queues     writeQueues
	encodings  sync.Pool         // of *[]byte: buffers of encodeStored
	index      consistency.Store // see CatchUp
}

// New returns a Store for the records and caches in o. It declares the selectable fields of types, the types that
// exist when the server starts, and creates allocators for them.
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

// Caller is the user for whom an operation runs.
type Caller struct {
	User  *auth.User
	Notes Notes

	// Allow checks whether the user may use a further verb on the same object, if a request turns out to need more
	// than the verb it was authorized for. If Allow is nil, everything is allowed.
	Allow func(ctx context.Context, verb string) error
}

// Notes collects the warnings and audit annotations of a request. Its methods must be safe for concurrent use.
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

// UID returns the uid of an object. It reads the backend, so the type need not be served. UID returns "" if the
// object does not exist.
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
		return "", fmt.Errorf("stored object %s %s cannot be read: %w", r, key, cmp.Or(err, errors.New("it has no uid")))
	}
	return stored.Metadata.UID, nil
}
