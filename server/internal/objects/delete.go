package objects

import (
	"context"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Deletion holds the parameters of a deletion.
type Deletion struct {
	UID, Version *string // preconditions
	Propagation  *string // Background, Foreground or Orphan
	Orphan       *bool   // orphanDependents, the deprecated form of Propagation
	Grace        *int64  // seconds
	Unreadable   bool    // delete the object only if it cannot be read

	listed   *objectcache.Entry // the object in the list of DeleteAll
	selector *Selector          // of that list; nil: the deletion does not depend on the state of the object
}

// Delete deletes the object of a write. An object with finalizers gets a deletionTimestamp and stays until a write
// removes the last finalizer. Result.Entry is nil if the object existed but could not be read.
func (s *Store) Delete(ctx context.Context, w *Write, d *Deletion) (*Result, error) {
	if d.Unreadable {
		if err := w.allow(ctx, verbUnreadable); err != nil {
			return nil, err
		}
	}
	w.deletion, w.Versioned = d, d.Version != nil
	return s.Write(ctx, w)
}

// DeleteAll deletes the objects of a page of a list, up to deletionsAtOnce at the same time. of returns the write and
// the deletion of each object. An object that the list no longer selects when it is deleted stays. The error is that
// of the first object, in the order of the list, that could not be deleted. Later objects may or may not be deleted.
func (s *Store) DeleteAll(ctx context.Context, v *resource.Version, sel *Selection, page *Page, of func(meta.Key) (*Write, *Deletion)) error {
	var selector *Selector
	if !page.Whole {
		selector = NewSelector(v, sel)
	}
	for some := range slices.Chunk(page.Entries, deletionsAtOnce) {
		if err := s.deleteSome(ctx, selector, some, of); err != nil {
			return err
		}
	}
	return nil
}

// deletionsAtOnce is how many objects DeleteAll deletes at the same time, so that their commits share an fsync.
const deletionsAtOnce = 32

func (s *Store) deleteSome(ctx context.Context, selector *Selector, entries []*objectcache.Entry, of func(meta.Key) (*Write, *Deletion)) error {
	errs, panics := make([]error, len(entries)), make([]any, len(entries))
	var all sync.WaitGroup
	for i, e := range entries {
		w, d := of(e.Key())
		d.listed, d.selector = e, selector
		all.Go(func() {
			defer func() { panics[i] = recover() }()
			_, errs[i] = s.Delete(ctx, w, d)
		})
	}
	all.Wait()
	for i, err := range errs {
		if panics[i] != nil {
			panic(panics[i]) // the request fails, not the process
		}
		if err != nil && !meta.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// concerns reports whether the list that led to the deletion still selects its object.
func (d *Deletion) concerns(ctx context.Context, c *objectcache.Cache, now *objectcache.Entry) (bool, error) {
	if d.selector == nil || now.Revision() == d.listed.Revision() {
		return true, nil
	}
	if !c.Selects(d.selector.Query, now) {
		return false, nil
	}
	selected, err := d.selector.Filter(ctx, []*objectcache.Entry{now})
	return len(selected) > 0, err
}

// planDeletion runs admission, checks the preconditions of the caller between its two phases, and marks the object as
// being deleted. It skips admission if the deletion is part of an admitted write.
func (s *Store) planDeletion(ctx context.Context, a *attempt) (change, error) {
	t := a.Version.Type
	if a.entry == nil {
		return change{}, meta.NotFound(a.Version.Resource().GroupResource(), a.Key.Name)
	}
	concerned, err := a.deletion.concerns(ctx, s.o.Hub.Cache(t.GroupResource()), a.entry)
	switch {
	case err != nil:
		return change{}, err
	case !concerned:
		return change{}, meta.NotFound(a.Version.Resource().GroupResource(), a.Key.Name)
	}
	if a.deletion.Unreadable {
		return change{}, meta.Conflict(t.GroupResource(), a.Key.Name, "unsafe deletion is not allowed because the object can be read")
	}
	live, err := Object(ctx, a.entry, t.Hub)
	if err != nil {
		return change{}, err
	}
	r, chain := s.admissionRequest(a.Write, nil, live), s.admissionChain(a.Write)
	r.Operation = admission.Delete
	a.setRequest(s, r)
	if err := chain.Mutate(ctx, r); err != nil {
		return change{}, err
	}
	if err := a.deletion.checkPreconditions(t, live); err != nil {
		return change{}, err
	}
	if err := chain.Validate(ctx, r); err != nil {
		return change{}, err
	}
	a.passed = true
	obj := live.Clone()
	a.deletion.begin(t, obj)
	if !live.Terminating() {
		if err := t.Hub.BeginDeletion(a.Version.NewChange(ctx, obj, live, "")); err != nil {
			return change{}, err
		}
	}
	p := s.allocators[t.GroupResource()]
	a.held, a.claims = p.claims(live), p.claims(obj)
	switch ends := finished(t, obj); {
	case ends && t.GracePeriod == nil:
		return change{erase: true}, nil
	case !ends && meta.Equal(obj.Tree(), live.Tree()):
		return change{}, nil
	}
	return change{obj: obj}, nil
}

// erase deletes the record of an object as it is. The result and the event of watches show the last state of the
// object. See store for kinds with graceful deletion.
func (s *Store) erase(ctx context.Context, a *attempt) (*Result, error) {
	if !a.DryRun {
		a.claims = nil
		released, err := s.requireForCommit(ctx, a, a.entry.Object())
		if err != nil {
			return nil, err
		}
		removal := storage.Write{Key: a.Version.StorageKey(a.Key), Expect: a.entry.Revision()}
		if _, err = s.commit(ctx, removal, a.required, released); err != nil {
			return nil, err
		}
	}
	return &Result{Entry: a.entry, Deleted: true}, nil
}

// verbUnreadable is the verb that is required to delete an unreadable object. A separate verb is needed because the
// object's finalizers and owners are unknown and admission cannot run.
const verbUnreadable = "unsafe-delete-ignore-read-errors"

// deleteUnreadable deletes the record of an object that cannot be read. Its uid is unknown, so a uid precondition
// always fails. This keeps the garbage collector from deleting such an object.
func (s *Store) deleteUnreadable(ctx context.Context, w *Write, u *client.UnreadableError) (*Result, error) {
	if err := w.allow(ctx, verbUnreadable); err != nil {
		return nil, err
	}
	about := []any{"resource", u.Resource, "namespace", w.Key.Namespace, "name", w.Key.Name}
	d := w.deletion
	if d.UID != nil || d.Version != nil && *d.Version != FormatRevision(u.Revision) {
		s.o.Log.Warn("unreadable object not deleted: its uid or resourceVersion precondition does not hold", about...)
		return nil, meta.Conflict(u.Resource, w.Key.Name, "Precondition failed: "+u.Error())
	}
	if !w.DryRun {
		if _, err := s.commit(ctx, storage.Write{Key: w.Version.StorageKey(w.Key), Expect: u.Revision}, nil, nil); err != nil {
			return nil, err
		}
		s.o.Log.Warn("unreadable object deleted", about...)
	}
	return &Result{Deleted: true}, nil
}

// checkPreconditions compares the preconditions of the caller with the live object.
func (d *Deletion) checkPreconditions(t *resource.Type, live *meta.Object) error {
	kind := meta.GroupResource{Group: t.Group, Resource: t.Kind}
	if t.RetainOnDelete != nil { // kinds that are emptied first have a separate delete in the reference server, with another message
		kind.Resource = t.Plural
	}
	if d.UID != nil && *d.UID != live.UID() {
		return meta.Conflict(kind, live.Name(), "Precondition failed: UID in precondition: "+*d.UID+", UID in object meta: "+live.UID())
	}
	if d.Version != nil && *d.Version != live.ResourceVersion() {
		return meta.Conflict(kind, live.Name(), "Precondition failed: ResourceVersion in precondition: "+*d.Version+", ResourceVersion in object meta: "+live.ResourceVersion())
	}
	return nil
}

// begin sets the deletionTimestamp of obj and replaces the finalizer of an earlier propagation policy with the
// finalizer of the present policy. Other finalizers stay. If obj is already being deleted, its grace period can only
// become shorter.
func (d *Deletion) begin(t *resource.Type, obj *meta.Object) {
	if policy := d.policy(t, obj); policy != "" && !t.NoDependents {
		finalizers := slices.DeleteFunc(obj.Finalizers(), func(f string) bool { return f == meta.FinalizerOrphan || f == meta.FinalizerForeground })
		switch policy {
		case "Orphan":
			finalizers = append(finalizers, meta.FinalizerOrphan)
		case "Foreground":
			finalizers = append(finalizers, meta.FinalizerForeground)
		}
		obj.SetFinalizers(finalizers)
	}
	var grace int64
	if t.GracePeriod != nil {
		grace = t.GracePeriod(obj, d.Grace)
	}
	if obj.Terminating() {
		if left := obj.Int("metadata", "deletionGracePeriodSeconds"); grace < left {
			begun := obj.DeletionTimestamp().Add(-time.Duration(left) * time.Second)
			obj.SetTime(begun.Add(time.Duration(grace)*time.Second), "metadata", "deletionTimestamp")
			obj.Metadata()["deletionGracePeriodSeconds"] = grace
		}
		return
	}
	obj.SetTime(time.Now().Add(time.Duration(grace)*time.Second), "metadata", "deletionTimestamp")
	obj.Metadata()["deletionGracePeriodSeconds"] = grace
	if obj.Generation() > 0 && t.RetainOnDelete == nil {
		obj.SetGeneration(obj.Generation() + 1)
	}
}

// policy returns the propagation policy for obj, or "" if the finalizers of obj stay as they are.
func (d *Deletion) policy(t *resource.Type, obj *meta.Object) string {
	if d.Orphan != nil {
		if *d.Orphan {
			return "Orphan"
		}
		return "Background"
	}
	if d.Propagation != nil {
		return *d.Propagation
	}
	if t.OrphansDependents && !slices.Contains(obj.Finalizers(), meta.FinalizerForeground) {
		return "Orphan"
	}
	return ""
}
