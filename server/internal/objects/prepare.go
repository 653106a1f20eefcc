package objects

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objectcache"
)

// prepare runs the steps between the mutating phase of admission and the commit: the hooks of the kind, the
// allocation of values, defaults, validation, and the validating phase of admission.
func (s *Store) prepare(ctx context.Context, a *attempt, obj, live *meta.Object) error {
	v := a.Version.Working()
	p := s.allocators[v.GroupResource()]
	a.held = p.claims(live)
	write := a.Version.NewChange(ctx, obj, live, a.subresource())
	dropRepeatedOwners(obj)
	if err := v.PrepareForWrite(write); err != nil {
		return err
	}
	if err := s.allocate(ctx, a, obj, live); err != nil {
		return err
	}
	// Fields that the kind does not have are dropped: plugins and webhooks may know another version of the kind than
	// this program.
	if _, faults := v.Normalize(obj); len(faults) > 0 {
		return meta.Internal(fmt.Errorf("admission set invalid values for %s: %v", v.Kind, faults))
	}
	if err := a.defaults(write); err != nil {
		return err
	}
	a.claims = p.claims(obj)
	if err := checkReservable(a, obj); err != nil {
		return err
	}
	p.claim(a, a.added())
	if err := s.validate(ctx, a, write); err != nil {
		return err
	}
	err := s.admissionChain(a.Write).Validate(ctx, a.request)
	a.passed = err == nil
	return err
}

// validate validates an object before it is written, and sends the warnings of the kind. The error is a *meta.Status
// with all violations.
func (s *Store) validate(ctx context.Context, a *attempt, write *registry.Change[meta.Object]) error {
	v, obj := a.Version.Working(), write.New
	duplicates, err := s.duplicates(ctx, a, obj)
	if err != nil {
		return err
	}
	causes, err := v.ValidateWrite(write)
	if err != nil {
		return err
	}
	causes, warnings := v.CheckRules(write, append(causes, duplicates...))
	for _, text := range warnings {
		a.Notes.Warn(text)
	}
	if len(causes) > 0 {
		kind := v.GroupKind()
		if a.Sub != nil && a.Sub.Body != nil && v.ScaleIsObject {
			kind = a.Sub.Body.GroupKind()
		}
		return meta.Invalid(kind, obj.Name(), causes)
	}
	if v.Warn != nil {
		for _, text := range v.Warn(write) {
			a.Notes.Warn(text)
		}
	}
	return nil
}

// allocate sets the values that an object lacks from the pool of its kind, if the kind has a pool.
func (s *Store) allocate(ctx context.Context, a *attempt, obj, live *meta.Object) error {
	p := s.allocators[a.Version.GroupResource()]
	if p == nil || p.t.Pool == nil || a.Sub != nil {
		return nil
	}
	sources, err := s.sources(ctx, p.t.Pool)
	if err != nil {
		return err
	}
	causes, err := p.allocate(a, obj, live, sources)
	if len(causes) > 0 {
		return meta.Invalid(a.Version.GroupKind(), obj.Name(), causes)
	}
	return err
}

// sources returns the objects that define a pool, from the cache. They are shared.
func (s *Store) sources(ctx context.Context, p *registry.Allocator) (list []*meta.Object, err error) {
	t := s.o.Types().Type(meta.GroupResource{Group: s.o.Names.Group(p.Source.Group), Resource: p.Source.Resource})
	if t == nil {
		return nil, nil
	}
	for _, e := range s.o.Hub.Cache(t.GroupResource()).List(objectcache.Query{}, "", 0).Entries {
		obj, err := Object(ctx, e, t.Hub)
		if err != nil {
			return nil, err
		}
		list = append(list, obj)
	}
	return list, nil
}

// admissionChain returns the plugins that run for a write: none if it is already admitted.
func (s *Store) admissionChain(w *Write) *admission.Chain {
	if w.Admitted {
		return &admission.Chain{}
	}
	return s.o.Admission
}

func (s *Store) admissionRequest(w *Write, obj, live *meta.Object) *admission.Request {
	op := admission.Update
	if live == nil {
		op = admission.Create
	}
	v := w.Version.Working()
	verb, options := verbOf(w.Options), optionsOf(w.Options, op)
	return &admission.Request{
		Operation: op, Kind: v.GVK(), Resource: v.Resource(), Type: &v.Type.Type, RequestKind: w.Version.GVK(), RequestResource: w.Version.Resource(),
		Namespace: w.Key.Namespace, Name: w.Key.Name, User: w.User, Object: obj, Old: live,
		Verb: verb, Options: options, DryRun: w.DryRun, Warn: w.Notes.Warn, Annotate: w.Notes.Annotate, AnnotateExternal: w.Notes.AnnotateExternal,
		Subresource: w.subresource(), Representations: (*representations)(w), Attempt: w.admissions,
		Serialize: func(ctx context.Context, sequence meta.Key) error {
			_, err := s.lastOf(ctx, resource.SequenceKey(sequence))
			return err
		},
	}
}

// initialize sets the metadata that only the server sets on a new object.
func (s *Store) initialize(w *Write, obj *meta.Object) {
	m := obj.Metadata()
	for _, f := range []string{"resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(m, f)
	}
	obj.SetUID(uuid.NewString())
	obj.SetTime(time.Now(), "metadata", "creationTimestamp")
	if w.Key.Namespace != "" {
		obj.SetNamespace(w.Key.Namespace)
	}
	if !w.Version.NoGeneration && !w.Version.LateGeneration {
		obj.SetGeneration(1)
	}
}

// inherit copies the metadata that an update cannot change from live to obj.
func inherit(obj, live *meta.Object) {
	m, old := obj.Metadata(), live.Metadata()
	for _, f := range []string{"uid", "creationTimestamp", "generation", "namespace"} {
		copyField(m, old, f)
	}
	if _, sent := m["deletionTimestamp"]; !sent || live.Terminating() {
		copyField(m, old, "deletionTimestamp")
	}
	if m["deletionGracePeriodSeconds"] == nil {
		copyField(m, old, "deletionGracePeriodSeconds")
	}
	delete(m, "selfLink")
	copyField(m, old, "resourceVersion")
}

// dropRepeatedOwners removes duplicates from metadata.ownerReferences.
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

func copyField(m, old map[string]any, field string) {
	if v, ok := old[field]; ok {
		m[field] = v
		return
	}
	delete(m, field)
}

// Admit runs admission for a request that stores nothing: for the body of a request such as a review, or for the
// options of a connection that does more than read. If the body is the object itself, Admit also records the manager
// of its fields.
func (s *Store) Admit(ctx context.Context, w *Write, obj *meta.Object) error {
	request := s.admissionRequest(w, obj, nil)
	defer request.Ended(false, true)
	if w.Sub != nil {
		request.Kind = w.Sub.WireKind(w.Version)
	}
	name, runsAdmission := obj.Name(), true
	if w.Key.Name == "" {
		request.Name = name
	}
	if w.Sub != nil && w.Sub.Connect != nil {
		request.Operation, request.Options = admission.Connect, nil
		name, runsAdmission = w.Key.Name, w.Sub.Connect.Style != registry.Reads
	}
	body := w.Version
	if w.Sub != nil {
		body = w.Sub.Body
	}
	if body != nil {
		if err := body.Defaults(body.NewChange(ctx, obj, nil, "")); err != nil {
			return err
		}
	}
	if runsAdmission {
		if err := s.o.Admission.Mutate(ctx, request); err != nil {
			return err
		}
	}
	if body != nil {
		causes, err := body.ValidateContent(body.NewChange(ctx, obj, nil, ""))
		if err != nil {
			return err
		}
		if len(causes) > 0 {
			return meta.Invalid(body.GroupKind(), name, causes)
		}
	}
	if !runsAdmission {
		return nil
	}
	if err := s.o.Admission.Validate(ctx, request); err != nil || w.Sub != nil {
		return err
	}
	return w.Own(ctx, nil, obj)
}
