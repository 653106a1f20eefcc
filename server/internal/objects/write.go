package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/readindex"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// Write is one change of an object, as it is asked for.
type Write struct {
	Caller
	Version *resource.Version // the caller's
	Key     meta.Key
	Sub     *resource.Subresource // nil: the object itself
	DryRun  bool
	Options *meta.Object // as admission sees them

	// Mutate makes what the caller wants of the live object, nil if there is none:
	// the new object, of which a sub-resource takes what it may change, or the body of
	// a sub-resource. What it returns is the write's own; the live one is shared and
	// stays as it is. Both are of Version, but where the body is not the item, live is
	// of the working version. It runs once for each attempt.
	Mutate func(live *meta.Object) (*meta.Object, error)

	// Own records who owns the fields of obj; nil records nothing.
	Own func(ctx context.Context, live, obj *meta.Object) error

	UID        string // of the object that is meant; empty: whichever has the name
	Create     bool   // a missing object may be created
	MustCreate bool   // an existing object is AlreadyExists
	Admitted   bool   // admission was asked already, about the request that the write is part of
	Versioned  bool   // the caller names the version that is meant, or Mutate looks at it
	Applied    bool   // by server-side apply: nulls that are no values of their fields are refused, not dropped

	// Serial names a sequence of writes that are made one after the other, on all servers
	// over the store: none comes between what Mutate sees in the caches and the commit. It
	// has no slash; empty: the write is of none.
	Serial string

	shown     []byte    // what Version shows of the object, if a converter said so, see toHub
	deletion  *Deletion // what is asked for instead of Mutate, or nil
	generated bool      // the name was generated, and admission may give another one

	renamed    *renamedError // the request that gave the object the name of the key, see follow; nil: none, or taken
	renames    int           // names that admission gave the object before this one
	admissions int           // attempts that admission let pass

	audit func(Audited) // audits the end of a write of a built-in controller; nil: it is not audited
}

// subresource returns the name of the sub-resource, empty for the object itself.
func (w *Write) subresource() string {
	if w.Sub == nil {
		return ""
	}
	return w.Sub.Name
}

// attempt is one try at a write.
type attempt struct {
	*Write

	turn         *turn    // among the writers of the key, if there are others
	unseenClaims []string // of objects that cannot be read, so that the cache does not show them, see reservations
	races        bool     // for what other writes under way claim, see allocator.allot

	serial       []storage.Write // that it is the next one of each of its sequences
	definition   []storage.Write // that the definition of a new object is as it was, see asDefined
	entry        *watch.Entry    // of the object that is there, or nil
	on           place           // of that object, if it is not committed yet
	held, claims []string        // of that object, and of what it becomes, see allocator
	underWay     []string        // what it claims for now, see allocator.claim

	request *admission.Request // what admission was asked; nil: nothing yet
	passed  bool               // admission let it pass
}

// next returns the attempt after a, with what that has learnt.
func (a *attempt) next() *attempt {
	return &attempt{Write: a.Write, turn: a.turn, unseenClaims: a.unseenClaims, races: a.races}
}

// added returns what the object claims that it did not hold before.
func (a *attempt) added() []string { return without(a.claims, a.held) }

// Result is what a write did.
type Result struct {
	Entry   *watch.Entry // the object as it is now, or as it last was
	Created bool
	Deleted bool // the object is gone
}

// Write makes a change: load live → mutate → convert to the working version →
// default → track field ownership → admission mutate → prepare → allot → default →
// validate → admission validate → reserve and commit → wait for the cache. A deletion
// takes the same way, but for what makes the object, see planDeletion.
//
// It makes attempts until no other write comes between its look at the object and
// its commit, or the context ends. The first attempt is made at once if nobody
// queues; after a conflict, or behind others, a writer takes its turn and keeps it
// until it has handed over what it made. Whoever means one version, or a name that
// is free, takes none: it need not see what others write first, and is told by its
// next attempt.
//
// If admission gives a new object another name, the write goes on under that name.
func (s *Store) Write(ctx context.Context, w *Write) (*Result, error) {
	a := &attempt{Write: w}
	defer func() { a.turn.end() }()
	ctx = s.With(ctx, readindex.Of(ctx, &s.index)) // of the request, or of the write alone
	queues := !w.Versioned && !w.MustCreate && !w.DryRun && !hasTurn(ctx)
	key := w.Version.StorageKey(w.Key)
	for tries := 1; ; tries++ {
		if queues && a.turn.over() && (tries > 1 || s.turns.wanted(key)) {
			var err error
			if a.turn, err = s.turns.take(ctx, key); err != nil {
				return nil, err
			}
			ctx = context.WithValue(ctx, inTurn{}, true)
		}
		res, err := s.attempt(ctx, a)
		if a.passed {
			w.admissions++
		}
		if a.on.sequence != nil {
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
		a, ctx = a.next(), s.after(ctx, conflict)
	}
}

// confirm waits for the commit of the object that an attempt was made of, since
// nobody may be told what rests on an object that will not have been.
func (s *Store) confirm(ctx context.Context, a *attempt, res *Result, err error) (*Result, error) {
	a.turn.end()
	revision, failed := a.on.wait(ctx)
	if failed != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if failed != nil {
		conflict := &storage.ConflictError{Key: a.on.first.Key}
		errors.As(failed, &conflict) // the store's conflict has the record that exists
		return nil, conflict
	}
	if err == nil {
		res.Entry = s.written(a.Write, revision, a.on.value())
	}
	return res, err
}

// Conflicts after each other from which on a writer pauses between its attempts,
// and the longest of the pauses, which begin with a millisecond and double.
const (
	patientTries = 10
	longestPause = 200 * time.Millisecond
)

// pause comes between two attempts at a write, and ends with the context: a store
// that says of every write that another came before is not to be asked without end.
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

// closed refuses new objects of a kind whose definition is being deleted.
func closed(r meta.GroupResource, name string) *meta.Status {
	return meta.Forbidden(r, name, "create not allowed while custom resource definition is terminating")
}

// Modified is the conflict of a caller who means another version than the newest.
func Modified(v *resource.Version, name string) *meta.Status {
	return meta.Conflict(v.Resource().GroupResource(), name,
		"the object has been modified; please apply your changes to the latest version and try again")
}

// exists is the error for a new object that has the name of a live one.
func exists(r meta.GroupResource, live *watch.Entry) *meta.Status {
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

// OtherUID returns the conflict for a write with a UID that differs from the UID of the object with that name.
// uid is empty if a PUT would create the object.
func OtherUID(v *resource.Version, name, meant, uid string) *meta.Status {
	return meta.Conflict(v.Resource().GroupResource(), name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", meant, uid))
}

// change is what an attempt found should become of an object.
type change struct {
	obj   *meta.Object // to be stored; nil: nothing changes
	erase bool         // the record goes as it is
}

// attempt makes one attempt at a write.
func (s *Store) attempt(ctx context.Context, a *attempt) (_ *Result, err error) {
	written := false
	defer func() {
		if a.request != nil && !errors.As(err, new(*renamedError)) {
			a.request.Uncertain = errors.As(err, new(*uncertainError))
			a.request.Ended(written)
		}
	}()
	err = s.joinSerial(ctx, a)
	if err == nil {
		err = s.look(ctx, a)
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
	obj, err := s.asDefined(ctx, a, c.obj)
	if err != nil {
		return nil, err
	}
	res, err := s.store(ctx, a, obj)
	written = err == nil && !a.DryRun
	return res, err
}

// plan makes the object that an attempt stores of the live one.
func (s *Store) plan(ctx context.Context, a *attempt) (change, error) {
	r := a.Version.Resource().GroupResource()
	live := a.entry
	nameTaken := live != nil && a.MustCreate // what is wrong with the object is told before that
	switch {
	case nameTaken:
		live = nil
	case live != nil:
	case a.Create && a.UID != "":
		return change{}, OtherUID(a.Version, a.Key.Name, a.UID, "")
	case !a.Create:
		return change{}, meta.NotFound(r, a.Key.Name)
	case a.Version.Closed:
		return change{}, closed(r, a.Key.Name)
	}
	a.shown = nil
	obj, old, err := s.admit(ctx, a, live)
	if err != nil {
		return change{}, err
	}
	if err := s.prepare(ctx, a, obj, old); err != nil {
		return change{}, err
	}
	keepHubForm(a.Version.Type, obj, old)
	switch {
	case a.MustCreate && a.Versioned && !a.DryRun:
		return change{}, meta.BadRequest("resourceVersion should not be set on objects to be created")
	case nameTaken:
		return change{}, exists(r, a.entry)
	case apply.Unchanged(old, obj) && !finished(a.Version.Type, obj) && !outdated(live, a.Version.Type):
		return change{}, nil
	}
	if v := a.Version.ItemVersion(a.Sub); v != a.Version.Working() { // nothing is written that the caller cannot be shown
		if _, err := v.Convert(ctx, obj); err != nil {
			return change{}, err
		}
	}
	if a.Version.Working() != a.Version.Hub {
		obj, err = a.toHub(ctx, obj)
	}
	return change{obj: obj}, err
}

// outdated reports whether the object of a definition is stored in another version than
// objects are now: writing it as it is stores it anew.
func outdated(e *watch.Entry, t *resource.Type) bool {
	return t.Converter != nil && e.Field("apiVersion") != t.Hub.GVK().APIVersion()
}

// look finds what an attempt is made of: what the writer before it in the queue handed
// over, or what the cache shows. Deletions begin with what is committed.
func (s *Store) look(ctx context.Context, a *attempt) (err error) {
	if a.deletion != nil {
		a.turn.settle(ctx)
	}
	if a.on, a.entry = a.turn.newest(); a.entry == nil {
		a.entry, err = s.Live(ctx, a.Version.Type, a.Key)
	}
	return err
}

// joinSerial finds the last write of the sequence that an attempt is of, and waits until the
// caches show it.
func (s *Store) joinSerial(ctx context.Context, a *attempt) error {
	if a.Serial == "" {
		return nil
	}
	last, err := s.mark(ctx, resource.SerialKey(a.Serial))
	if err != nil {
		return err
	}
	a.serial = []storage.Write{{Key: last.Key, Value: []byte(a.Version.StorageKey(a.Key)), Expect: last.Revision}}
	return s.wait(ctx, last.Revision)
}

// store commits obj, or its removal if its deletion is finished, and waits
// until the cache shows it. Where deletion is graceful, the object is seen with
// its end before it goes; what is cut off between the two is left to Ending.
func (s *Store) store(ctx context.Context, a *attempt, obj *meta.Object) (*Result, error) {
	t, entry := a.Version.Type, a.entry
	var expect storage.Revision
	if entry != nil {
		expect = entry.Revision()
	}
	stored := s.encodeStored(obj)
	res := &Result{Created: entry == nil, Deleted: entry != nil && finished(t, obj)}
	change := storage.Write{Key: t.StorageKey(a.Key), Value: stored, Expect: expect}
	if res.Deleted {
		a.claims = nil
	} else {
		release, err := s.allow(a.Write, change, obj, entry)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if a.DryRun {
		res.Entry = s.written(a.Write, expect, stored)
		return res, nil
	}
	reserved, err := s.reservations(ctx, a, obj)
	if err != nil {
		return nil, err
	}
	if entry != nil && !res.Deleted && len(reserved) == 0 && len(stored) <= storage.SequenceBytes && a.sharesCommit(ctx) {
		rev, err := s.commitInTurn(ctx, a, change)
		if err != nil {
			return nil, err
		}
		res.Entry = s.written(a.Write, rev, stored)
		return res, nil
	}
	if a.on.sequence != nil { // only what is committed can be replaced by other means
		a.turn.settle(ctx)
		a.on = place{}
		return nil, &storage.ConflictError{Key: change.Key}
	}
	if res.Deleted {
		if err := s.showEnd(ctx, a, &change, res); err != nil {
			return nil, err
		}
		change.Value = nil
	}
	rev, err := s.commit(ctx, change, reserved...)
	if err != nil {
		rev, err = s.commitRebased(ctx, a, err, change, reserved)
	}
	var conflict *storage.ConflictError
	if res.Entry != nil && errors.As(err, &conflict) && conflict.Key == change.Key {
		return res, nil // somebody else removed it: every write to one that has ended does
	}
	if err != nil {
		return nil, err
	}
	res.Entry = s.written(a.Write, rev, stored)
	return res, nil
}

// showEnd commits an object whose deletion is graceful with its end, unless that was seen
// before. Where the store has no room for that it goes unseen, which makes some.
func (s *Store) showEnd(ctx context.Context, a *attempt, change *storage.Write, res *Result) error {
	if a.Version.Type.Grace == nil || ending(a.entry.Object()) {
		return nil
	}
	rev, err := s.commit(ctx, *change)
	if errors.Is(err, storage.ErrFull) {
		return nil
	}
	if err == nil {
		res.Entry, change.Expect = s.written(a.Write, rev, change.Value), rev
	}
	return err
}

// sharesCommit reports whether those behind may be committed together with an attempt: it
// has its turn, and no condition but theirs.
func (a *attempt) sharesCommit(ctx context.Context) bool { return !a.turn.over() && termOf(ctx) == nil }

// commitInTurn hands an object over to the writers behind and returns when it is
// committed, maybe together with what they make of it. That may not be torn from
// its answer, nor from what is reserved for it, by a caller who goes away.
func (s *Store) commitInTurn(ctx context.Context, a *attempt, change storage.Write) (storage.Revision, error) {
	made := watch.NewEntry(a.Key, change.Expect, change.Value)
	if a.shown != nil {
		made.KeepForm(convertedForm(a.Version), a.shown)
	}
	at, commits := a.turn.handOver(a.on, change, made)
	if at.sequence == nil {
		return 0, &storage.ConflictError{Key: change.Key}
	}
	a.on = place{}
	if commits {
		s.commitSequence(ctx, at.sequence)
	}
	return at.wait(context.WithoutCancel(ctx))
}

// commitSequence commits a sequence once those before it are, with all that was
// handed over until then.
func (s *Store) commitSequence(ctx context.Context, q *sequence) {
	var revisions []storage.Revision
	err := uncertain(errors.New("the store broke off a commit")) // the result if the commit panics; callers wait for one
	defer func() { s.turns.finish(q, revisions, err) }()
	if before := q.before; before != nil {
		<-before.done // its committer does not wait for ever either
		if before.err != nil {
			err = &storage.ConflictError{Key: q.first.Key}
			return
		}
		q.first.Expect = before.revisions[len(before.revisions)-1]
	}
	s.turns.close(q)
	ctx, cancel := s.commitTime(ctx)
	defer cancel()
	revisions, err = storage.CommitSequence(ctx, s.backend, q.first, q.then...)
	err = uncertain(err)
	if len(revisions) == 0 {
		return
	}
	if late := s.o.Hub.Wait(ctx, revisions[len(revisions)-1]); late != nil {
		revisions, err = nil, uncertain(late) // nobody is told of what the cache does not show
	}
}

// written returns the entry of an object that was written. A custom one has just
// been through the schema, so it and that of the cache are shown as they are, or as the
// converter said.
func (s *Store) written(w *Write, rev storage.Revision, stored []byte) *watch.Entry {
	v, e := w.Version, watch.NewEntry(w.Key, rev, stored)
	both := []*watch.Entry{e}
	if kept := s.o.Hub.Cache(v.GroupResource()).Get(w.Key); kept != nil && kept.Revision() == rev && !w.DryRun {
		both = append(both, kept)
	}
	for _, e := range both {
		switch {
		case w.shown != nil:
			e.KeepForm(convertedForm(v), w.shown)
		case !v.AsStored() && v == v.Hub && v.Default == nil && e.Field("apiVersion") == v.GVK().APIVersion():
			e.MarkConforming(v.SchemaMark())
		}
	}
	return e
}

// commit makes a write, with those that belong to it; commitSequence makes those of a
// queue.
func (s *Store) commit(ctx context.Context, w storage.Write, reserved ...storage.Write) (storage.Revision, error) {
	ctx, cancel := s.commitTime(ctx)
	defer cancel()
	now, later := withReservations(w, reserved)
	rev, err := s.backend.Commit(ctx, now...)
	if err != nil {
		return 0, uncertain(err)
	}
	for ws := range slices.Chunk(later, storage.CommitLength/4) {
		if err := s.commitEach(ctx, ws); err != nil {
			s.o.Log.Warn("what an object held stays reserved until somebody needs it", "key", w.Key, "error", err)
		}
	}
	return rev, uncertain(s.o.Hub.Wait(ctx, rev))
}

// uncertainError is the error of a commit that may have been made, or may be yet.
type uncertainError struct{ error }

func (e *uncertainError) Unwrap() error { return e.error }

// uncertain makes an error of a commit an uncertainError, unless it says that nothing was written.
func uncertain(err error) error {
	var status *meta.Status
	var conflict *storage.ConflictError
	switch {
	case err == nil, errors.As(err, &status), errors.As(err, &conflict), errors.Is(err, errDeposed),
		errors.Is(err, storage.ErrFull), errors.Is(err, storage.ErrTooLarge), errors.Is(err, storage.ErrNotTogether):
		return err
	}
	return &uncertainError{err}
}

// commitTime bounds a commit. The write must not be torn from its answer by a
// caller who goes away.
func (s *Store) commitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.o.RequestTime)
}

// encodeStored gives the bytes that the store gets: JSON without the
// resourceVersion. See Records for what that makes of them.
func (s *Store) encodeStored(obj *meta.Object) []byte {
	room, _ := s.encodings.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	*room = codec.EncodeStored((*room)[:0], obj.Tree())
	stored := bytes.Clone(*room) // no longer than it has to be: it is kept
	if cap(*room) <= maxEncoding {
		s.encodings.Put(room)
	}
	return stored
}

// maxEncoding bounds the memory that an encoding leaves for the next one.
const maxEncoding = 1 << 20

// Owner returns how a write that is no apply records who owns its fields.
func Owner(v *resource.Version, sub *resource.Subresource, manager string) func(ctx context.Context, live, obj *meta.Object) error {
	by := apply.Write{Manager: manager, APIVersion: v.GVK().APIVersion()}
	if sub != nil {
		by.Subresource = sub.Name
	}
	return func(ctx context.Context, live, obj *meta.Object) error {
		by.Now = time.Now()
		return v.Tracker(ctx).Update(live, obj, by)
	}
}
