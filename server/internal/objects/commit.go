package objects

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// store commits obj, or deletes the record if the deletion of obj is finished, and returns after the caches show the
// result. A kind with graceful deletion is committed once more before its record is deleted, so that watches see the
// last state. Ending completes a deletion that is interrupted between these two commits.
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
	released, err := s.requireForCommit(ctx, a, obj)
	if err != nil {
		return nil, err
	}
	if entry != nil && !res.Deleted && len(released) == 0 && len(stored) <= storage.SequenceBytes && a.sharesCommit(ctx) {
		rev, err := s.commitInSlot(ctx, a, change)
		if err != nil {
			return nil, err
		}
		res.Entry = s.written(a.Write, rev, stored)
		return res, nil
	}
	if a.base.batch != nil { // this commit can replace only a committed object
		a.slot.drain(ctx)
		a.base = position{}
		return nil, &storage.ConflictError{Key: change.Key}
	}
	if res.Deleted {
		if err := s.showEnd(ctx, a, &change, res); err != nil {
			return nil, err
		}
		change.Value = nil
	}
	rev, err := s.commit(ctx, change, a.required, released)
	var conflict *storage.ConflictError
	if res.Entry != nil && errors.As(err, &conflict) && conflict.Key == change.Key {
		return res, nil // another writer removed it first, as every writer does that finds the deletion finished
	}
	if err != nil {
		return nil, err
	}
	res.Entry = s.written(a.Write, rev, stored)
	return res, nil
}

// requireForCommit adds the preconditions of storing obj to an attempt: the objects that decided admission, and the
// reservations of the values that obj begins to hold. It returns the deletions of the reservations that obj releases.
func (s *Store) requireForCommit(ctx context.Context, a *attempt, obj *meta.Object) (released []storage.Write, err error) {
	if err := s.requireAdmitted(a); err != nil {
		return nil, err
	}
	if err := s.reserve(ctx, a, obj); err != nil {
		return nil, err
	}
	return s.releases(ctx, a, obj)
}

// showEnd commits the last state of an object with graceful deletion, unless watches have seen it. If the store has
// no room for that state, showEnd skips it, because the removal makes room.
func (s *Store) showEnd(ctx context.Context, a *attempt, change *storage.Write, res *Result) error {
	if a.Version.Type.GracePeriod == nil || ending(a.entry.Object()) {
		return nil
	}
	rev, err := s.commit(ctx, *change, nil, nil)
	if errors.Is(err, storage.ErrFull) {
		return nil
	}
	if err == nil {
		res.Entry, change.Expect = s.written(a.Write, rev, change.Value), rev
	}
	return err
}

// sharesCommit reports whether an attempt may be committed in one batch with the writers that queue behind it: it
// holds its slot, and its commit has no preconditions, which a batch does not support.
func (a *attempt) sharesCommit(ctx context.Context) bool {
	return len(a.required) == 0 && !a.slot.released() && !hasLeaderFence(ctx)
}

// commitInSlot submits an object to the write queue and returns when it is committed, possibly together with values
// that the following writers made from it. The end of ctx does not interrupt it, because the writer must learn the
// result.
func (s *Store) commitInSlot(ctx context.Context, a *attempt, change storage.Write) (storage.Revision, error) {
	made := objectcache.NewEntry(a.Key, change.Expect, change.Value)
	if a.shown != nil {
		made.KeepEncoded(convertedEncoding(a.Version), a.shown)
	}
	at, commits := a.slot.submit(a.base, change, made)
	if at.batch == nil {
		return 0, &storage.ConflictError{Key: change.Key}
	}
	a.base = position{}
	if commits {
		s.commitBatch(ctx, at.batch)
	}
	return at.wait(context.WithoutCancel(ctx))
}

// commitBatch commits a batch, with all values that writers add to it until the previous batch is committed.
func (s *Store) commitBatch(ctx context.Context, b *batch) {
	var revisions []storage.Revision
	err := uncertain(errors.New("the commit was interrupted")) // the result if the backend panics, because writers wait for a result
	defer func() { s.queues.finish(b, revisions, err) }()
	if before := b.before; before != nil {
		<-before.done // bounded by the commitTime of that batch
		if before.err != nil {
			err = &storage.ConflictError{Key: b.first.Key}
			return
		}
		b.first.Expect = before.revisions[len(before.revisions)-1]
	}
	s.queues.seal(b)
	ctx, cancel := s.commitTime(ctx)
	defer cancel()
	revisions, err = storage.CommitSequence(ctx, s.backend, b.first, b.then...)
	err = uncertain(err)
	if len(revisions) == 0 {
		return
	}
	if late := s.o.Hub.Wait(ctx, revisions[len(revisions)-1]); late != nil {
		revisions, err = nil, uncertain(late) // a write is acknowledged only after the caches show it
	}
}

// written returns the entry of an object that was written. It marks this entry, and the entry in the cache, as ready
// to be shown without a conversion: an object of a definition has just been normalized by the schema, and the text
// that a converter returned is kept with the entries.
func (s *Store) written(w *Write, rev storage.Revision, stored []byte) *objectcache.Entry {
	v, e := w.Version, objectcache.NewEntry(w.Key, rev, stored)
	both := []*objectcache.Entry{e}
	if kept := s.o.Hub.Cache(v.GroupResource()).Get(w.Key); kept != nil && kept.Revision() == rev && !w.DryRun {
		both = append(both, kept)
	}
	for _, e := range both {
		switch {
		case w.shown != nil:
			e.KeepEncoded(convertedEncoding(v), w.shown)
		case !v.AsStored() && v == v.Hub && v.Default == nil && e.Field("apiVersion") == v.GVK().APIVersion():
			e.MarkConforming(v.SchemaMark())
		}
	}
	return e
}

// commit commits w if its preconditions hold, and returns its revision after the caches show it. If a precondition
// fails and can be renewed, commit renews it and repeats the commit. released are deletions of reservations: they are
// part of the same commit as far as the backend's limits allow, and are committed after it otherwise.
func (s *Store) commit(ctx context.Context, w storage.Write, required []*precondition, released []storage.Write) (storage.Revision, error) {
	together, later := divide(w, required, released)
	for tries := 1; ; tries++ {
		all, compared, err := withPreconditions(ctx, required, together)
		if err != nil {
			return 0, err
		}
		within, cancel := s.commitTime(ctx)
		rev, err := s.backend.Commit(within, all...)
		if err == nil {
			s.remove(within, w.Key, later)
			err = uncertain(s.o.Hub.Wait(within, rev))
			cancel()
			return rev, err
		}
		cancel()
		err = uncertain(preconditionFailure(err, compared))
		var failed *preconditionError
		var conflict *storage.ConflictError
		if !errors.As(err, &failed) || failed.renew == nil || !errors.As(err, &conflict) || pause(ctx, tries) != nil {
			return 0, err
		}
		now, holds := failed.renew(s.afterConflict(ctx, conflict))
		if !holds {
			return 0, err
		}
		failed.Expect = now
	}
}

// remove deletes reservations of an object that were not part of its commit. Errors are only logged.
func (s *Store) remove(ctx context.Context, key string, reservations []storage.Write) {
	for ws := range slices.Chunk(reservations, storage.CommitLength/4) {
		if err := s.commitEach(ctx, ws); err != nil {
			s.o.Log.Warn("reservations of an object were not removed; they are removed when their values are needed", "key", key, "error", err)
		}
	}
}

// withPreconditions returns ws with the comparisons of all preconditions, including the LeaderFence of ctx if it has
// one. All commits of a Store use it, except those of batches and of Leadership. It does not modify ws.
func withPreconditions(ctx context.Context, required []*precondition, ws []storage.Write) (all []storage.Write, compared []*precondition, err error) {
	compared, err = requireLeader(ctx, required, ws)
	if err != nil {
		return nil, nil, err
	}
	all = slices.Clip(ws)
	for _, p := range compared {
		all = append(all, p.Write)
	}
	return all, compared, nil
}

// transact commits ws if all preconditions hold. It does not wait for the caches.
func (s *Store) transact(ctx context.Context, required []*precondition, ws ...storage.Write) (storage.Revision, error) {
	all, compared, err := withPreconditions(ctx, required, ws)
	if err != nil {
		return 0, err
	}
	rev, err := s.backend.Commit(ctx, all...)
	return rev, preconditionFailure(err, compared)
}

// commitEach commits ws together if no record has changed, and one by one otherwise. It skips writes of records that
// were changed meanwhile.
func (s *Store) commitEach(ctx context.Context, ws []storage.Write) error {
	_, err := s.transact(ctx, nil, ws...)
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	for _, w := range ws {
		if _, err := s.transact(ctx, nil, w); err != nil && !errors.As(err, &conflict) {
			return err
		}
	}
	return nil
}

// uncertainError wraps the error of a commit that may have been made, or may still be made.
type uncertainError struct{ error }

func (e *uncertainError) Unwrap() error { return e.error }

// uncertain wraps err as an uncertainError, unless err implies that nothing was written.
func uncertain(err error) error {
	var status *meta.Status
	var conflict *storage.ConflictError
	switch {
	case err == nil, errors.As(err, &status), errors.As(err, &conflict), errors.Is(err, errDeposed),
		errors.Is(err, storage.ErrFull), errors.Is(err, storage.ErrTooLarge), errors.Is(err, storage.ErrInvalidCommit):
		return err
	}
	return &uncertainError{err}
}

// commitTime returns a context for a commit. It ends after RequestTime, not when ctx ends, because the writer must
// learn the result.
func (s *Store) commitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.o.RequestTime)
}

// encodeStored returns the encoding of obj for the backend: JSON without the resourceVersion. The caller owns the
// result. Records adds the signature and hub copies.
func (s *Store) encodeStored(obj *meta.Object) []byte {
	room, _ := s.encodings.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	*room = codec.EncodeStored((*room)[:0], obj.Tree())
	stored := bytes.Clone(*room) // exact size, because the backend keeps the value
	if cap(*room) <= maxEncoding {
		s.encodings.Put(room)
	}
	return stored
}

// maxEncoding is the largest capacity of a buffer that is kept for the next encoding, in bytes.
const maxEncoding = 1 << 20
