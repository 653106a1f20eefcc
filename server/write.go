package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/codec"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// write is one write on its way through the server. Every verb that changes an
// object fills in one and calls Server.write with it; they differ in mutate.
type write struct {
	version *registry.Version // the caller's; mutate sees and makes objects of it
	key     meta.Key
	sub     *registry.Subresource // nil: the object itself
	user    *auth.User
	notes   *notes
	dryRun  bool
	options *meta.Object // as admission sees them

	// mutate makes the new object from the live one, nil if there is none. The
	// new one is the write's own; the live one is shared and stays as it is.
	mutate func(live *meta.Object) (*meta.Object, error)

	// own records who owns the fields of obj; nil records nothing.
	own func(live, obj *meta.Object) error

	turn *turn // among the writers of the key, if there are others
	on   place // of the object that an attempt is made of, if it is not committed yet

	release func() // gives back what admit reserved, see pool

	uid        string // of the object that is meant; empty: whichever has the name
	create     bool   // a missing object may be created
	mustCreate bool   // an existing object is AlreadyExists
	versioned  bool   // the caller names the version that it means
}

// result is what a write did.
type result struct {
	entry   *watch.Entry // the object as it is now, or as it last was
	created bool
	deleted bool // the object is gone
}

// write runs the write: load live → mutate → default → track field ownership →
// admission mutate → fit → default → validate → admission validate → commit →
// wait for the cache.
func (s *Server) write(ctx context.Context, w *write) (*result, error) {
	return s.retry(ctx, w, func(ctx context.Context) (*result, error) { return s.try(ctx, w) })
}

// retry makes attempts at a write until none comes between its look at the
// object and its commit, or the context ends. The first attempt is made at once
// if nobody queues; after a conflict, or behind others, a writer takes its turn
// and keeps it until it has handed over what it made. Whoever means one version,
// or a name that is free, takes none: it need not see what others write first, and
// is told by its next attempt.
func (s *Server) retry(ctx context.Context, w *write, attempt func(context.Context) (*result, error)) (*result, error) {
	defer func() { w.turn.end() }()
	queues := !w.versioned && !w.mustCreate && !w.dryRun && !hasTurn(ctx)
	key := w.version.StorageKey(w.key)
	for tries := 1; ; tries++ {
		if queues && w.turn.over() && (tries > 1 || s.turns.wanted(key)) {
			var err error
			if w.turn, err = s.turns.take(ctx, key); err != nil {
				return nil, err
			}
			ctx = context.WithValue(ctx, inTurn{}, true)
		}
		res, err := attempt(ctx)
		if w.on.sequence != nil {
			res, err = s.confirm(ctx, w, res, err)
		}
		var conflict *storage.ConflictError
		if !errors.As(err, &conflict) {
			return res, err
		}
		if err := pause(ctx, tries); err != nil {
			return nil, err
		}
	}
}

// confirm waits for the commit of the object that an attempt was made of, since
// nobody may be told what rests on an object that will not have been.
func (s *Server) confirm(ctx context.Context, w *write, res *result, err error) (*result, error) {
	on := w.on
	w.on = place{}
	w.turn.end()
	revision, failed := on.wait(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if failed != nil {
		return nil, &storage.ConflictError{Key: on.first.Key}
	}
	if err == nil {
		res.entry = s.written(w, revision, on.value())
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

func modified(t *registry.Type, name string) *meta.Status {
	return meta.Conflict(t.GroupResource(), name,
		"the object has been modified; please apply your changes to the latest version and try again")
}

// otherUID is the conflict of a caller who means another object than the one
// that has the name, or, where PUT creates, one that is gone.
func otherUID(t *registry.Type, name, meant, uid string) *meta.Status {
	return meta.Conflict(t.GroupResource(), name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", meant, uid))
}

func (s *Server) try(ctx context.Context, w *write) (*result, error) {
	entry, err := s.newest(ctx, w)
	if err != nil {
		return nil, err
	}
	var live *meta.Object
	taken := entry != nil && w.mustCreate
	if taken {
		entry = nil // what is wrong with the object is told before that its name is taken
	}
	if entry != nil {
		if live, err = s.object(entry, w.version); err != nil {
			return nil, err
		}
	} else if w.create && w.uid != "" {
		return nil, otherUID(w.version.Type, w.key.Name, w.uid, "")
	} else if !w.create {
		return nil, meta.NotFound(w.version.GroupResource(), w.key.Name)
	} else if w.version.Closed {
		return nil, closed(w.version.GroupResource(), w.key.Name)
	}
	obj, err := w.mutate(live)
	if err != nil {
		return nil, err
	}
	if live == nil {
		s.initialize(w, obj)
	} else {
		inherit(obj, live)
	}
	w.release = func() {}
	defer func() { w.release() }()
	if err := s.admit(ctx, w, obj, live); err != nil {
		return nil, err
	}
	if w.mustCreate && w.versioned && !w.dryRun {
		return nil, meta.BadRequest("resourceVersion should not be set on objects to be created")
	}
	if taken {
		return nil, meta.AlreadyExists(w.version.GroupResource(), w.key.Name)
	}
	if apply.Unchanged(live, obj) && !finished(w.version.Type, obj) {
		return &result{entry: entry}, nil
	}
	res, err := s.store(ctx, w, obj, entry)
	if err == nil && res.created && w.version.Custom && !w.dryRun {
		err = s.takeBack(ctx, w, res.entry)
	}
	return res, err
}

// takeBack removes a new object whose definition began to go, or went, meanwhile,
// even if there is another by now: nobody else would, for it may have come after
// the last look for objects.
func (s *Server) takeBack(ctx context.Context, w *write, made *watch.Entry) error {
	if now := s.types().Type(w.version.GroupResource()); now != nil && !now.Closed && sameDefinition(now, w.version.Type) {
		return nil
	}
	_, err := s.commit(ctx, storage.Write{Key: w.version.StorageKey(w.key), Expect: made.Revision()})
	var other *storage.ConflictError
	if err != nil && !errors.As(err, &other) {
		return err
	}
	return closed(w.version.GroupResource(), w.key.Name)
}

// newest returns the newest entry of the object of a write, or nil: that of the
// writer before it in the queue, or the one in the cache.
func (s *Server) newest(ctx context.Context, w *write) (*watch.Entry, error) {
	if w.on = w.turn.newest(); w.on.sequence != nil {
		return w.on.entry, nil
	}
	return s.live(ctx, w.version.Type, w.key)
}

// live returns the newest entry of an object, or nil.
func (s *Server) live(ctx context.Context, t *registry.Type, key meta.Key) (*watch.Entry, error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	return s.lookUp(t, key)
}

// catchUp waits until the caches show every commit acknowledged so far.
func (s *Server) catchUp(ctx context.Context) error {
	rev, err := s.backend.Revision(ctx)
	if err != nil {
		return err
	}
	return s.hub.Wait(ctx, rev)
}

// admit takes an object through everything between mutate and commit: what
// defaults, admission and the kind make of it and say to it.
func (s *Server) admit(ctx context.Context, w *write, obj, live *meta.Object) error {
	v := w.version
	if err := v.Defaults(obj); err != nil {
		return err
	}
	for _, text := range v.Warnings(obj, live) {
		w.notes.warn(text)
	}
	dropRepeatedOwners(obj)
	if w.own != nil {
		if err := w.own(live, obj); err != nil {
			return err
		}
	}
	request := s.admissionRequest(w, obj, live)
	if err := s.admission.Mutate(ctx, request); err != nil {
		return err
	}
	v.Fit(ctx, obj, live, w.sub)
	if err := s.allot(w, obj, live); err != nil {
		return err
	}
	if unknown, faults := v.Conform(obj); len(unknown) > 0 || len(faults) > 0 {
		return meta.Internal(fmt.Errorf("admission made fields that %s does not have: %v %v", v.Kind, unknown, faults))
	}
	if err := v.Defaults(obj); err != nil {
		return err
	}
	if causes := v.Faults(ctx, obj, live, w.sub); len(causes) > 0 {
		kind := v.GroupKind()
		if w.sub != nil && w.sub.Body != nil && v.SelfChecked {
			kind = w.sub.Body.GroupKind()
		}
		return meta.Invalid(kind, obj.Name(), causes)
	}
	if v.Warn != nil {
		for _, text := range v.Warn(obj, live) {
			w.notes.warn(text)
		}
	}
	if err := s.admission.Validate(ctx, request); err != nil {
		return err
	}
	return nil
}

// allot gives an object of a kind with a pool the values that it lacks.
func (s *Server) allot(w *write, obj, live *meta.Object) error {
	p := s.pools[w.version.Type]
	if p == nil || w.sub != nil {
		return nil
	}
	release, causes, err := p.allot(obj, live)
	if err != nil {
		return meta.Internal(err)
	}
	if len(causes) > 0 {
		return meta.Invalid(w.version.GroupKind(), obj.Name(), causes)
	}
	w.release = release
	return nil
}

func (s *Server) admissionRequest(w *write, obj, live *meta.Object) *admission.Request {
	op := admission.Update
	if live == nil {
		op = admission.Create
	}
	r := &admission.Request{
		Operation: op, Kind: w.version.GVK(), Resource: w.version.Resource(),
		Namespace: w.key.Namespace, Name: w.key.Name, User: w.user, Object: obj, Old: live,
		Options: w.options, DryRun: w.dryRun, Warn: w.notes.warn, Annotate: w.notes.annotate,
	}
	if w.sub != nil {
		r.Subresource = w.sub.Name
	}
	return r
}

// initialize gives a new object what only the server gives.
func (s *Server) initialize(w *write, obj *meta.Object) {
	m := obj.Metadata()
	for _, f := range []string{"resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(m, f)
	}
	obj.SetUID(newUID())
	obj.SetTime(time.Now(), "metadata", "creationTimestamp")
	if w.key.Namespace != "" {
		obj.SetNamespace(w.key.Namespace)
	}
	if !w.version.NoGeneration {
		obj.SetGeneration(1)
	}
}

// inherit gives a changed object the metadata that writes cannot change.
func inherit(obj, live *meta.Object) {
	m, old := obj.Metadata(), live.Metadata()
	for _, f := range []string{"uid", "creationTimestamp", "generation", "namespace"} {
		keep(m, old, f)
	}
	if _, sent := m["deletionTimestamp"]; !sent || live.Terminating() {
		keep(m, old, "deletionTimestamp")
	}
	if m["deletionGracePeriodSeconds"] == nil {
		keep(m, old, "deletionGracePeriodSeconds")
	}
	delete(m, "selfLink")
	keep(m, old, "resourceVersion")
}

// dropRepeatedOwners leaves each owner in metadata.ownerReferences once.
func dropRepeatedOwners(obj *meta.Object) {
	list := obj.List("metadata", "ownerReferences")
	if len(list) < 2 {
		return
	}
	seen := make(map[string]bool, len(list))
	rest := slices.DeleteFunc(slices.Clone(list), func(owner any) bool {
		tree, _ := owner.(map[string]any)
		text := string(codec.EncodeJSON(nil, tree))
		again := seen[text]
		seen[text] = true
		return again
	})
	if len(rest) < len(list) {
		obj.Metadata()["ownerReferences"] = rest
	}
}

func keep(m, old map[string]any, field string) {
	if v, ok := old[field]; ok {
		m[field] = v
		return
	}
	delete(m, field)
}

// finished reports whether an object that is being deleted has nothing left to
// wait for.
func finished(t *registry.Type, obj *meta.Object) bool {
	return ending(obj) && len(obj.Finalizers()) == 0 && !(t.Held != nil && t.Held(obj))
}

// ending reports whether an object is being deleted and has no time left.
func ending(obj *meta.Object) bool {
	return obj.Terminating() && obj.Int("metadata", "deletionGracePeriodSeconds") == 0
}

// store commits obj, or its removal if its deletion is finished, and waits
// until the cache shows it. Where deletion is graceful, the object is seen with
// its end before it goes; what is cut off between the two is left to endingLoop.
func (s *Server) store(ctx context.Context, w *write, obj *meta.Object, entry *watch.Entry) (*result, error) {
	t := w.version.Type
	expect := storage.Revision(0)
	if entry != nil {
		expect = entry.Revision()
	}
	stored := s.encodeStored(w.version, obj)
	res := &result{created: entry == nil, deleted: entry != nil && finished(t, obj)}
	change := storage.Write{Key: t.StorageKey(w.key), Value: stored, Expect: expect}
	if !res.deleted {
		release, err := s.allow(w, change, obj, entry)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if w.dryRun {
		res.entry = s.written(w, expect, stored)
		return res, nil
	}
	if entry != nil && !res.deleted && len(stored) <= storage.SequenceBytes && !w.turn.over() {
		rev, err := s.commitInTurn(ctx, w, change)
		if err != nil {
			return nil, err
		}
		res.entry = s.written(w, rev, stored)
		return res, nil
	}
	if w.on.sequence != nil { // only what is committed can be replaced by other means
		w.turn.settle(ctx)
		w.on = place{}
		return nil, &storage.ConflictError{Key: change.Key}
	}
	if res.deleted && t.Grace != nil && !ending(entry.Object()) {
		rev, err := s.commit(ctx, change)
		if err != nil {
			return nil, err
		}
		res.entry, change.Expect = s.written(w, rev, stored), rev
	}
	if res.deleted {
		change.Value = nil
	}
	rev, err := s.commit(ctx, change)
	var conflict *storage.ConflictError
	if res.entry != nil && errors.As(err, &conflict) {
		return res, nil // somebody else removed it: every write to one that has ended does
	}
	if err != nil {
		return nil, err
	}
	res.entry = s.written(w, rev, stored)
	return res, nil
}

// commitInTurn hands an object over to the writers behind and returns when it is
// committed, maybe together with what they make of it.
func (s *Server) commitInTurn(ctx context.Context, w *write, change storage.Write) (storage.Revision, error) {
	at, commits := w.turn.handOver(w.on, change, watch.NewEntry(w.key, change.Expect, change.Value))
	if at.sequence == nil {
		return 0, &storage.ConflictError{Key: change.Key}
	}
	w.on = place{}
	if commits {
		s.commitSequence(ctx, at.sequence)
	}
	return at.wait(ctx)
}

// commitSequence commits a sequence once those before it are, with all that was
// handed over until then.
func (s *Server) commitSequence(ctx context.Context, q *sequence) {
	if before := q.before; before != nil {
		<-before.done // its committer does not wait for ever either
		if before.err != nil {
			s.turns.finish(q, nil, &storage.ConflictError{Key: q.first.Key})
			return
		}
		q.first.Expect = before.revisions[len(before.revisions)-1]
	}
	s.turns.close(q)
	ctx, cancel := s.commitTime(ctx)
	defer cancel()
	revisions, err := storage.CommitSequence(ctx, s.backend, q.first, q.then...)
	if len(revisions) > 0 {
		err = errors.Join(err, s.hub.Wait(ctx, revisions[len(revisions)-1]))
	}
	s.turns.finish(q, revisions, err)
}

// written returns the entry of an object that was written. A custom one has just
// been through the schema, so it and that of the cache are shown as they are.
func (s *Server) written(w *write, rev storage.Revision, stored []byte) *watch.Entry {
	v, e := w.version, watch.NewEntry(w.key, rev, stored)
	if v.AsStored() || v != v.Storage || v.Default != nil {
		return e
	}
	e.SetFits(v.Fitted())
	if kept := s.hub.Cache(v.GroupResource()).Get(w.key); kept != nil && kept.Revision() == rev && !w.dryRun {
		kept.SetFits(v.Fitted())
	}
	return e
}

// commit makes one write; commitSequence makes those of a queue.
func (s *Server) commit(ctx context.Context, w storage.Write) (storage.Revision, error) {
	ctx, cancel := s.commitTime(ctx)
	defer cancel()
	rev, err := s.backend.Commit(ctx, w)
	if err != nil {
		return 0, err
	}
	return rev, s.hub.Wait(ctx, rev)
}

// commitTime bounds a commit. The write must not be torn from its answer by a
// caller who goes away.
func (s *Server) commitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.limits.RequestTime)
}

// encodeStored gives the bytes that are stored: JSON in the storage version,
// without the resourceVersion.
func (s *Server) encodeStored(v *registry.Version, obj *meta.Object) []byte {
	if v != v.Storage {
		obj = v.Storage.FromStorage(obj) // what the storage version does not know cannot be kept
	}
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
const maxEncoding = 64 << 10

// owner returns how a write that is no apply records who owns its fields.
func owner(w *write, manager string) func(live, obj *meta.Object) error {
	by := apply.Write{Manager: manager, APIVersion: w.version.GVK().APIVersion()}
	if w.sub != nil {
		by.Subresource = w.sub.Name
	}
	return func(live, obj *meta.Object) error {
		by.Now = time.Now()
		return w.version.Tracker().Update(live, obj, by)
	}
}

// code is the HTTP status of a write that succeeded.
func (r *result) code() int {
	if r.created {
		return http.StatusCreated
	}
	return http.StatusOK
}
