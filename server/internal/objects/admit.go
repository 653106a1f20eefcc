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

// admit makes the object of an attempt, and runs defaulting, field management and the mutating phase of admission.
// entry is that of the live object, or nil. The request of a write that admission renamed is used as it is.
func (s *Store) admit(ctx context.Context, a *attempt, entry *objectcache.Entry) (obj, live *meta.Object, err error) {
	if renamed := a.renamed; renamed != nil {
		r := renamed.request
		a.renamed, a.required = nil, renamed.required
		a.admitting(s, r)
		r.Representations = (*forms)(a.Write)
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
	keepHubForm(a.Version.Type, obj, nil) // is neither owned nor counted
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
	a.admitting(s, s.admissionRequest(a.Write, obj, live))
	return obj, live, s.runMutating(ctx, a, sent)
}

// defaults fills in the defaults of the object that is written.
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
		keep(r.Object.Metadata(), sent, f)
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
		keep(r.Object.Metadata(), given, f)
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

// renamedError says that admission gave a new object another name than that of its write. The
// request goes on under that name, with the preconditions that the attempt has so far.
type renamedError struct {
	request  *admission.Request
	required []*precondition
}

// Error implements error.
func (e *renamedError) Error() string {
	return "admission gave the object the name " + e.request.Name
}

// maxRenames bounds how often admission may give a new object another name.
const maxRenames = 8

// follow makes a write under the name that admission gave the new object.
func (s *Store) follow(ctx context.Context, w *Write, renamed *renamedError) (*Result, error) {
	if w.renames == maxRenames {
		renamed.request.Ended(false, true)
		return nil, meta.Internal(errors.New("admission gives the object another name each time"))
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

// verbOf returns the verb of the request that has such options.
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

// optionsOf returns options as admission sees them: those of the operation that a PUT or PATCH
// comes to.
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
