package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// longestGrace bounds a grace period, in seconds; more of them overflow times.
const longestGrace = 1<<31 - 1

// deleteOptions are the options of delete and deletecollection, from the body
// or, without one, from the query.
type deleteOptions struct {
	uid, version *string // preconditions
	propagation  *string // Background, Foreground or Orphan
	orphan       *bool   // orphanDependents, the old form
	grace        *int64
	dryRun       bool
	object       *meta.Object
}

// delete answers DELETE on an item.
func (s *Server) delete(ctx context.Context, w *response, r *request) error {
	o, err := s.parseDeleteOptions(ctx, r)
	if err != nil {
		return err
	}
	res, err := s.remove(ctx, s.newRemoval(r, r.key(), o))
	if err != nil {
		return err
	}
	if res.entry == nil {
		return s.respondStatus(w, r, &meta.Status{Status: "Success", Details: &meta.Details{
			Name: r.name, Group: r.version.Group, Kind: r.version.Plural,
		}})
	}
	if !res.deleted || !r.version.AnswersStatus {
		code := http.StatusOK
		if !res.deleted && o.orphan != nil && !*o.orphan {
			code = http.StatusAccepted
		}
		return s.respondEntry(w, r, code, res.entry)
	}
	return s.respondStatus(w, r, &meta.Status{Status: "Success", Details: &meta.Details{
		Name: r.name, Group: r.version.Group, Kind: r.version.Plural, UID: res.entry.Object().UID(),
	}})
}

// removal is one delete on its way through the server.
type removal struct {
	*write
	deleteOptions *deleteOptions
	action        auth.Action // that was allowed
}

func (s *Server) newRemoval(r *request, key meta.Key, o *deleteOptions) *removal {
	return &removal{deleteOptions: o, action: r.action(), write: &write{
		version: r.version, key: key, user: r.user, notes: &r.notes, dryRun: o.dryRun, options: o.object, versioned: o.version != nil,
	}}
}

// remove starts the deletion of an object, or ends it if nothing holds it: an
// object with finalizers gets a deletionTimestamp and stays; removing the last
// finalizer, by whatever verb, ends it.
func (s *Server) remove(ctx context.Context, w *removal) (*result, error) {
	return s.retry(ctx, w.write, func(ctx context.Context) (*result, error) { return s.tryRemove(ctx, w) })
}

func (s *Server) tryRemove(ctx context.Context, w *removal) (*result, error) {
	t := w.version.Type
	w.turn.settle(ctx)
	entry, err := s.live(ctx, t, w.key)
	if damaged := (*registry.UnreadableError)(nil); errors.As(err, &damaged) {
		return s.removeUnreadable(ctx, w, damaged)
	}
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return nil, meta.NotFound(t.GroupResource(), w.key.Name)
	}
	live, err := s.object(entry, t.Storage)
	if err != nil {
		return nil, err
	}
	if err := s.admitDelete(ctx, w, live); err != nil {
		return nil, err
	}
	obj := live.Clone()
	w.deleteOptions.begin(t, obj)
	switch ends := finished(t, obj); {
	case ends && t.Grace == nil:
		return s.erase(ctx, w, entry)
	case !ends && meta.Equal(obj.Tree(), live.Tree()):
		return &result{entry: entry}, nil
	}
	return s.store(ctx, w.write, obj, entry)
}

// erase removes the record. The answer and the watch show the object as it was;
// one of a kind that ends gracefully shows its end, see store.
func (s *Server) erase(ctx context.Context, w *removal, entry *watch.Entry) (*result, error) {
	res := &result{entry: entry, deleted: true}
	if w.dryRun {
		return res, nil
	}
	_, err := s.commit(ctx, storage.Write{Key: w.version.StorageKey(w.key), Expect: entry.Revision()})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// admitDelete asks admission, and holds the preconditions against the object
// between its phases.
func (s *Server) admitDelete(ctx context.Context, w *removal, live *meta.Object) error {
	r := s.admissionRequest(w.write, nil, live)
	r.Operation = admission.Delete
	if err := s.admission.Mutate(ctx, r); err != nil {
		return err
	}
	if err := w.deleteOptions.check(w.version.Type, live); err != nil {
		return err
	}
	return s.admission.Validate(ctx, r)
}

// check holds the preconditions against the live object.
func (o *deleteOptions) check(t *registry.Type, live *meta.Object) error {
	kind := meta.GroupResource{Group: t.Group, Resource: t.Kind}
	if t.Held != nil { // one that is emptied first has a delete of its own
		kind.Resource = t.Plural
	}
	if o.uid != nil && *o.uid != live.UID() {
		return meta.Conflict(kind, live.Name(), "Precondition failed: UID in precondition: "+*o.uid+", UID in object meta: "+live.UID())
	}
	if o.version != nil && *o.version != live.ResourceVersion() {
		return meta.Conflict(kind, live.Name(), "Precondition failed: ResourceVersion in precondition: "+*o.version+", ResourceVersion in object meta: "+live.ResourceVersion())
	}
	return nil
}

// begin marks obj as being deleted, with the finalizers of the propagation
// policy. The latest policy wins; own finalizers stay.
func (o *deleteOptions) begin(t *registry.Type, obj *meta.Object) {
	if own := o.policy(); own != "" && !t.NoDependents {
		finalizers := slices.DeleteFunc(obj.Finalizers(), func(f string) bool { return f == meta.FinalizerOrphan || f == meta.FinalizerForeground })
		switch own {
		case "Orphan":
			finalizers = append(finalizers, meta.FinalizerOrphan)
		case "Foreground":
			finalizers = append(finalizers, meta.FinalizerForeground)
		}
		obj.SetFinalizers(finalizers)
	}
	var grace int64
	if t.Grace != nil {
		grace = t.Grace(obj, o.grace)
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
	if obj.Generation() > 0 && t.Held == nil {
		obj.SetGeneration(obj.Generation() + 1)
	}
	if t.Terminate != nil {
		t.Terminate(obj)
	}
}

func (o *deleteOptions) policy() string {
	if o.orphan != nil {
		if *o.orphan {
			return "Orphan"
		}
		return "Background"
	}
	if o.propagation != nil {
		return *o.propagation
	}
	return ""
}

// deleteCollection answers DELETE on a collection: what a list with the same
// parameters shows is deleted, each object on its own. The answer is a Status
// (configuration and storage, Operation template).
func (s *Server) deleteCollection(ctx context.Context, w *response, r *request) error {
	list, err := parseListOptions(r.query, r.version.Type, false)
	if err != nil {
		return err
	}
	s.widen(r, list)
	o, err := s.parseDeleteOptions(ctx, r)
	if err != nil {
		return err
	}
	page, err := s.page(ctx, r, list)
	if err != nil {
		return err
	}
	if len(page.Entries) > s.limits.CollectionPage {
		return meta.Failure(http.StatusRequestEntityTooLarge, meta.ReasonRequestEntityTooLarge,
			"%d objects are too many for one request: set a limit", len(page.Entries))
	}
	for some := range slices.Chunk(page.Entries, removalsAtOnce) {
		if err := s.removeAll(ctx, r, o, some); err != nil {
			return err
		}
	}
	return s.respondStatus(w, r, &meta.Status{Status: "Success", Details: &meta.Details{
		Group: r.version.Group, Kind: r.version.Plural,
	}})
}

// removalsAtOnce is how many objects a deletecollection removes at a time, so that
// they share the waits for the disk.
const removalsAtOnce = 32

// removeAll removes objects at the same time. The error is that of the first one
// in order that could not be removed; those after it may be gone or not.
func (s *Server) removeAll(ctx context.Context, r *request, o *deleteOptions, entries []*watch.Entry) error {
	errs, panics := make([]error, len(entries)), make([]any, len(entries))
	var all sync.WaitGroup
	for i, e := range entries {
		own := *o
		own.object = o.object.Clone() // admission may write to it
		all.Go(func() {
			defer func() { panics[i] = recover() }()
			_, errs[i] = s.remove(ctx, s.newRemoval(r, e.Key(), &own))
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

// parseDeleteOptions reads the options of a delete.
func (s *Server) parseDeleteOptions(ctx context.Context, r *request) (*deleteOptions, error) {
	tree, err := s.readDeleteOptions(ctx, r)
	if err != nil {
		return nil, err
	}
	o := &deleteOptions{object: meta.NewObject(tree)}
	group := s.names.Group(names.GroupMeta)
	o.object.SetGVK(meta.GroupVersionKind{Group: group, Version: "v1", Kind: "DeleteOptions"})
	o.uid, o.version = optional(o.object, "preconditions", "uid"), optional(o.object, "preconditions", "resourceVersion")
	o.propagation = optional(o.object, "propagationPolicy")
	if b, ok := tree["orphanDependents"].(bool); ok {
		o.orphan = &b
	}
	if g, ok := tree["gracePeriodSeconds"].(int64); ok {
		g = max(-longestGrace, min(g, longestGrace))
		o.grace = &g
	}
	var faults []meta.Cause
	o.dryRun, faults = parseDryRun(o.object.Strings("dryRun"))
	causes := append(o.policyFaults(), faults...)
	if len(causes) > 0 {
		return nil, meta.Invalid(meta.GroupKind{Group: group, Kind: "DeleteOptions"}, "", causes)
	}
	return o, nil
}

// optional returns a field that may be empty, nil if it is not there.
func optional(o *meta.Object, path ...string) *string {
	if v, _ := o.Get(path...); v != nil {
		text := o.String(path...)
		return &text
	}
	return nil
}

// given is a text that is there, nil if it is empty.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (o *deleteOptions) policyFaults() (causes []meta.Cause) {
	if o.propagation == nil {
		return nil
	}
	if o.orphan != nil {
		causes = append(causes, meta.Cause{Reason: meta.CauseInvalid, Field: "propagationPolicy",
			Message: "Invalid value: " + strconv.Quote(*o.propagation) + ": orphanDependents and propagationPolicy cannot both be set"})
	}
	switch *o.propagation {
	case "Background", "Foreground", "Orphan":
	default:
		causes = append(causes, unsupported("propagationPolicy", *o.propagation, "Foreground", "Background", "Orphan"))
	}
	return causes
}

// readDeleteOptions returns the options in the body, or those in the query if
// there is no body.
func (s *Server) readDeleteOptions(ctx context.Context, r *request) (map[string]any, error) {
	tree, err := s.readDeleteBody(ctx, r)
	if err != nil || tree != nil {
		return tree, err
	}
	tree = map[string]any{}
	if r.query.Has("propagationPolicy") {
		tree["propagationPolicy"] = r.query.Get("propagationPolicy")
	}
	if r.query.Has("orphanDependents") {
		tree["orphanDependents"] = truthy(r.query, "orphanDependents")
	}
	if r.query.Has("gracePeriodSeconds") {
		g, err := integer(r.query, "gracePeriodSeconds")
		if err != nil {
			return nil, err
		}
		tree["gracePeriodSeconds"] = g
	}
	if dry := r.query["dryRun"]; len(dry) > 0 {
		list := make([]any, len(dry))
		for i, d := range dry {
			list[i] = d
		}
		tree["dryRun"] = list
	}
	pre := map[string]any{}
	if uid := r.query.Get("uid"); uid != "" {
		pre["uid"] = uid
	}
	if v := r.query.Get("resourceVersion"); v != "" {
		pre["resourceVersion"] = v
	}
	if len(pre) > 0 {
		tree["preconditions"] = pre
	}
	return tree, nil
}
