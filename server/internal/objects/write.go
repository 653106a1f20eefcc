package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Write is a request to change one object.
type Write struct {
	Caller
	Version *resource.Version // of the request
	Key     meta.Key
	Sub     *resource.Subresource // nil: the object itself
	DryRun  bool
	Options *meta.Object // the options of the request, for admission

	// Mutate returns the object that the caller wants. It is either the new object, of which a subresource takes the
	// fields that it may change, or the body of a subresource. live is nil if the object does not exist. It is shared
	// and must not be modified. The result belongs to the write. Both are in Version, except that live is in the
	// working version if the body is not the item. Mutate runs once in each attempt.
	Mutate func(live *meta.Object) (*meta.Object, error)

	// Own records in obj the manager of its fields. If Own is nil, nothing is recorded.
	Own func(ctx context.Context, live, obj *meta.Object) error

	UID        string // precondition on the uid of the object; "": none
	Create     bool   // a missing object may be created
	MustCreate bool   // an existing object is AlreadyExists
	Admitted   bool   // admission is skipped, because the write is part of an admitted request
	Versioned  bool   // the caller has a resourceVersion precondition, which may be checked by Mutate
	Applied    bool   // server-side apply: a null in a field that cannot be null is refused, not dropped

	// Sequence is the storage key of a sequence of writes. No other write of the sequence, on any server that shares
	// the store, is committed between the reads of Mutate and the commit. "" means no sequence.
	Sequence string

	shown     []byte    // JSON of the object in Version, as a converter returned it, see toHub; nil: unknown
	deletion  *Deletion // replaces Mutate in a deletion
	generated bool      // the name was generated, so that admission may replace it

	renamed    *renamedError // the request that renamed the object, until an attempt continues it, see follow
	renames    int           // how often admission has renamed the object
	admissions int           // number of attempts that passed admission

	audit func(Audited) // called with the outcome of a write of a built-in controller; nil: not audited
}

// subresource returns the name of the subresource, or "" for the object itself.
func (w *Write) subresource() string {
	if w.Sub == nil {
		return ""
	}
	return w.Sub.Name
}

// attempt is a single try of a write.
type attempt struct {
	*Write

	slot         *slot    // in the queue of the key; nil: none
	unseenClaims []string // claims of unreadable objects, which the cache does not show, see reserve
	races        bool     // values that are claimed by other writes may be chosen, see allocator.allocate

	required     []*precondition    // of the commit, see require
	entry        *objectcache.Entry // of the live object, or nil
	base         position           // of the live object, if it is not committed yet
	held, claims []string           // claims of the live object and of the new object, see allocator
	underWay     []string           // values that this attempt claims now, see allocator.claim

	request *admission.Request // nil: admission has not begun
	passed  bool               // the attempt passed admission
}

// next returns the attempt that follows a after a conflict. It keeps the slot and the information that a has gathered
// about claims.
func (a *attempt) next() *attempt {
	return &attempt{Write: a.Write, slot: a.slot, unseenClaims: a.unseenClaims, races: a.races}
}

// added returns the claims of the new object that the live object does not have.
func (a *attempt) added() []string { return difference(a.claims, a.held) }

// Result is the outcome of a write.
type Result struct {
	Entry   *objectcache.Entry // the object after the write, or its last state
	Created bool
	Deleted bool // the object is gone
}

// Write makes a change in these steps: load the live object, run Mutate, convert to the working version, set
// defaults, track field ownership, run mutating admission, prepare, allocate values, set defaults again, validate,
// run validating admission, reserve values and commit, wait for the cache. A deletion takes the same steps, except
// those that make the object, see planDeletion.
//
// Write repeats its attempt until no conflict occurs or ctx ends. The first attempt does not queue unless other
// writers do. After a conflict, the writer enters the queue of its key and stays there until it has submitted its
// object. Writes with a resourceVersion precondition, and creates, do not queue; the retry reports the conflict.
//
// If admission renames a new object, the write continues under the new name.
func (s *Store) Write(ctx context.Context, w *Write) (*Result, error) {
	a := &attempt{Write: w}
	defer func() { a.slot.leave() }()
	ctx = s.With(ctx, consistency.ReadIndexOf(ctx, &s.index)) // shared by all attempts until a conflict
	queues := !w.Versioned && !w.MustCreate && !w.DryRun && !consistency.HoldsSlot(ctx)
	key := w.Version.StorageKey(w.Key)
	for tries := 1; ; tries++ {
		if queues && a.slot.released() && (tries > 1 || s.queues.busy(key)) {
			var err error
			if a.slot, err = s.queues.enter(ctx, key); err != nil {
				return nil, err
			}
			ctx = consistency.WithSlot(ctx)
		}
		res, err := s.attempt(ctx, a)
		if a.passed {
			w.admissions++
		}
		if a.base.batch != nil {
			res, err = s.confirm(ctx, a, res, err)
		}
		var renamed *renamedError
		if errors.As(err, &renamed) {
			return s.follow(ctx, w, renamed)
		}
		var conflict *storage.ConflictError
		if !errors.As(err, &conflict) {
			return res, err
		}
		if err := pause(ctx, tries); err != nil {
			return nil, err
		}
		a, ctx = a.next(), s.afterConflict(ctx, conflict)
	}
}

// confirm waits until the value that an attempt is based on is committed. It does not return the result of the
// attempt, not even an error, before that, because the value may never be committed. In that case it returns a
// conflict, and the write is retried.
func (s *Store) confirm(ctx context.Context, a *attempt, res *Result, err error) (*Result, error) {
	a.slot.leave()
	revision, failed := a.base.wait(ctx)
	if failed != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if failed != nil {
		conflict := &storage.ConflictError{Key: a.base.first.Key}
		errors.As(failed, &conflict) // the conflict of the backend has the present record
		return nil, conflict
	}
	if err == nil {
		res.Entry = s.written(a.Write, revision, a.base.value())
	}
	return res, err
}

// After patientTries conflicts, a writer pauses between attempts. The first pause is one millisecond, and each later
// pause is twice as long, up to longestPause.
const (
	patientTries = 10
	longestPause = 200 * time.Millisecond
)

// pause waits before the next attempt. If ctx ends first, pause returns its error. The pause bounds the load if a
// backend reports a conflict for every commit.
func pause(ctx context.Context, tries int) error {
	if tries < patientTries {
		return ctx.Err()
	}
	timer := time.NewTimer(min(longestPause, time.Millisecond<<min(tries-patientTries, 10)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// definitionTerminating returns the error for a new object if the definition of its kind is being deleted.
func definitionTerminating(r meta.GroupResource, name string) *meta.Status {
	return meta.Forbidden(r, name, "create not allowed while custom resource definition is terminating")
}

// Modified returns the conflict for a write if its resourceVersion is not the newest.
func Modified(v *resource.Version, name string) *meta.Status {
	return meta.Conflict(v.Resource().GroupResource(), name,
		"the object has been modified; please apply your changes to the latest version and try again")
}

// alreadyExists returns the error for a new object with the name of an existing object.
func alreadyExists(r meta.GroupResource, live *objectcache.Entry) *meta.Status {
	s := meta.AlreadyExists(r, live.Key().Name)
	if live.Field("metadata", "deletionTimestamp") != "" {
		s.Message = "object is being deleted: " + s.Message
	}
	return s
}

// UIDMismatch returns the conflict for an apply configuration with a UID if no object has its name.
func UIDMismatch(v *resource.Version, name, uid string) *meta.Status {
	return meta.Conflict(v.Resource().GroupResource(), name,
		fmt.Sprintf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
}

// OtherUID returns the conflict for a write if its UID precondition, meant, differs from the uid of the object. uid
// is empty if a PUT would create the object.
func OtherUID(v *resource.Version, name, meant, uid string) *meta.Status {
	return meta.Conflict(v.Resource().GroupResource(), name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", meant, uid))
}

// change is the planned result of an attempt.
type change struct {
	obj   *meta.Object // to store; nil: the object stays as it is
	erase bool         // the record is deleted without storing a last state
}

// attempt makes a single attempt at a write.
func (s *Store) attempt(ctx context.Context, a *attempt) (_ *Result, err error) {
	written := false
	defer func() {
		if a.request != nil && !errors.As(err, new(*renamedError)) {
			a.request.Ended(written, !errors.As(err, new(*uncertainError)))
		}
	}()
	if a.Sequence != "" {
		err = s.joinSequence(ctx, a, a.Sequence)
	}
	if err == nil {
		err = s.loadLive(ctx, a)
	}
	if damaged := (*client.UnreadableError)(nil); a.deletion != nil && errors.As(err, &damaged) {
		return s.deleteUnreadable(ctx, a.Write, damaged)
	}
	if err != nil {
		return nil, err
	}
	defer func() { s.allocators[a.Version.GroupResource()].claim(a, nil) }()
	var c change
	if a.deletion != nil {
		c, err = s.planDeletion(ctx, a)
	} else {
		c, err = s.plan(ctx, a)
	}
	switch {
	case err != nil:
		return nil, err
	case c.erase:
		res, err := s.erase(ctx, a)
		written = err == nil && !a.DryRun
		return res, err
	case c.obj == nil:
		return &Result{Entry: a.entry}, nil
	}
	obj, err := s.inStorageVersion(ctx, a, c.obj)
	if err != nil {
		return nil, err
	}
	res, err := s.store(ctx, a, obj)
	written = err == nil && !a.DryRun
	return res, err
}

// plan returns the object to store in place of the live object.
func (s *Store) plan(ctx context.Context, a *attempt) (change, error) {
	r := a.Version.Resource().GroupResource()
	live := a.entry
	nameTaken := live != nil && a.MustCreate // reported after the violations of the object
	switch {
	case nameTaken:
		live = nil
	case live != nil:
	case a.Create && a.UID != "":
		return change{}, OtherUID(a.Version, a.Key.Name, a.UID, "")
	case !a.Create:
		return change{}, meta.NotFound(r, a.Key.Name)
	case a.Version.Closed:
		return change{}, definitionTerminating(r, a.Key.Name)
	}
	a.shown = nil
	obj, old, err := s.admit(ctx, a, live)
	if err != nil {
		return change{}, err
	}
	if err := s.prepare(ctx, a, obj, old); err != nil {
		return change{}, err
	}
	keepHubCopies(a.Version.Type, obj, old)
	switch {
	case a.MustCreate && a.Versioned && !a.DryRun:
		return change{}, meta.BadRequest("resourceVersion should not be set on objects to be created")
	case nameTaken:
		return change{}, alreadyExists(r, a.entry)
	case unchanged(old, obj) && !finished(a.Version.Type, obj) && !outdated(live, a.Version.Type):
		return change{}, nil
	}
	if v := a.Version.ItemVersion(a.Sub); v != a.Version.Working() { // refuse an object that the response could not show
		if _, err := v.Convert(ctx, obj); err != nil {
			return change{}, err
		}
	}
	if a.Version.Working() != a.Version.Hub {
		obj, err = a.toHub(ctx, obj)
	}
	return change{obj: obj}, err
}

// outdated reports whether an object of a definition is not stored in the current storage version. A write without a
// change then rewrites it.
func outdated(e *objectcache.Entry, t *resource.Type) bool {
	return t.Converter != nil && e.Field("apiVersion") != t.Hub.GVK().APIVersion()
}

// loadLive sets the live object of an attempt: the value that the previous writer in the queue has submitted, or the
// object in the cache. A deletion first waits until that value is committed.
func (s *Store) loadLive(ctx context.Context, a *attempt) (err error) {
	if a.deletion != nil {
		a.slot.drain(ctx)
	}
	if a.base, a.entry = a.slot.newest(); a.entry == nil {
		a.entry, err = s.Live(ctx, a.Version.Type, a.Key)
	}
	return err
}

// Owner returns the Write.Own function of a write by a manager that is not an apply.
func Owner(v *resource.Version, sub *resource.Subresource, manager string) func(ctx context.Context, live, obj *meta.Object) error {
	by := apply.Options{Manager: manager, APIVersion: v.GVK().APIVersion()}
	if sub != nil {
		by.Subresource = sub.Name
	}
	return func(ctx context.Context, live, obj *meta.Object) error {
		by.Now = time.Now()
		return v.FieldManager(ctx).Update(live, obj, by)
	}
}
