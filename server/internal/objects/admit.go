package objects

import (
	"context"
	"errors"
	"maps"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objectcache"
)

// admit makes the object of an attempt: it runs Mutate, defaulting, field management and the mutating phase of
// admission. entry is the entry of the live object, or nil. If admission renamed the object of this write before,
// admit continues with the object of that request. The returned obj belongs to the attempt; live is shared.
func (s *Store) admit(ctx context.Context, a *attempt, entry *objectcache.Entry) (obj, live *meta.Object, err error) {
	if renamed := a.renamed; renamed != nil {
		r := renamed.request
		a.renamed, a.required = nil, renamed.required
		a.setRequest(s, r)
		r.Representations = (*representations)(a.Write)
		return r.Object, nil, nil
	}
	obj, live, err = s.mutate(ctx, a.Write, entry)
	if err != nil {
		return nil, nil, err
	}
	sent := maps.Clone(obj.Metadata())
	if live == nil {
		s.initialize(a.Write, obj)
	} else {
		inherit(obj, live)
	}
	keepHubCopies(a.Version.Type, obj, nil) // field management and plugins do not see it
	v := a.Version.Working()
	if err := a.defaults(a.Version.NewChange(ctx, obj, live, a.subresource())); err != nil {
		return nil, nil, err
	}
	for _, text := range v.Warnings(obj, live) {
		a.Notes.Warn(text)
	}
	dropRepeatedOwners(obj)
	if a.Own != nil {
		if err := a.Own(ctx, live, obj); err != nil {
			return nil, nil, err
		}
	}
	a.setRequest(s, s.admissionRequest(a.Write, obj, live))
	return obj, live, s.runMutating(ctx, a, sent)
}

// defaults sets the defaults of the new object.
func (a *attempt) defaults(write *registry.Change[meta.Object]) error {
	v := a.Version.Working()
	if a.Applied {
		return v.AppliedDefaults(write)
	}
	return v.Defaults(write)
}

// identity lists the metadata fields that only the server writes.
var identity = []string{"uid", "creationTimestamp", "generation", "resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// runMutating runs the mutating phase of admission. On create, plugins see the metadata that the caller sent,
// without the fields that the server sets and without a generated name. runMutating returns a *renamedError if
// a plugin changed the name of a new object.
func (s *Store) runMutating(ctx context.Context, a *attempt, sent map[string]any) error {
	r := a.request
	given := maps.Clone(r.Object.Metadata())
	for _, f := range identity {
		copyField(r.Object.Metadata(), sent, f)
	}
	if r.Operation == admission.Create {
		if a.generated {
			delete(r.Object.Metadata(), "name")
		}
		r.Name = r.Object.Name()
	}
	if err := s.admissionChain(a.Write).Mutate(ctx, r); err != nil {
		return err
	}
	for _, f := range identity {
		copyField(r.Object.Metadata(), given, f)
	}
	if r.Operation != admission.Create {
		return nil
	}
	if r.Object.Name() == "" {
		r.Object.SetName(a.Key.Name)
	}
	if r.Name = r.Object.Name(); r.Name != a.Key.Name {
		return &renamedError{r, a.required}
	}
	return nil
}

// renamedError is the error of an attempt in which admission changed the name of the new object. The request
// continues under the new name, with the preconditions that the attempt has so far.
type renamedError struct {
	request  *admission.Request
	required []*precondition
}

// Error implements error.
func (e *renamedError) Error() string {
	return "admission gave the object the name " + e.request.Name
}

// maxRenames bounds how often admission may rename the object of one write.
const maxRenames = 8

// follow continues a write under the name that admission gave the new object.
func (s *Store) follow(ctx context.Context, w *Write, renamed *renamedError) (*Result, error) {
	if w.renames == maxRenames {
		renamed.request.Ended(false, true)
		return nil, meta.Internal(errors.New("admission keeps renaming the object"))
	}
	one := *w
	one.Key.Name, one.MustCreate, one.renamed, one.renames = renamed.request.Name, true, renamed, w.renames+1
	res, err := s.Write(ctx, &one)
	if one.renamed != nil {
		one.renamed.request.Ended(false, true)
	}
	w.admissions = one.admissions
	return res, err
}

// verbOf returns the verb of a request with these options.
func verbOf(options *meta.Object) string {
	switch options.Kind() {
	case "CreateOptions":
		return "create"
	case "UpdateOptions":
		return "update"
	case "PatchOptions":
		return "patch"
	case "DeleteOptions":
		return "delete"
	}
	return ""
}

// optionsOf returns options for admission. A PUT or PATCH gets the options of its operation, CreateOptions or
// UpdateOptions. options is not modified.
func optionsOf(options *meta.Object, op admission.Operation) *meta.Object {
	kind := "UpdateOptions"
	if op == admission.Create {
		kind = "CreateOptions"
	}
	if options == nil || options.Kind() == kind || options.Kind() != "PatchOptions" && options.Kind() != "UpdateOptions" {
		return options
	}
	options = options.Clone()
	options.Set(kind, "kind")
	options.Delete("force")
	return options
}
