package registry

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
)

// Change is a write of an object as the hooks of its kind see it. T is the kind's Go type, or
// meta.Object for hooks on untyped objects.
//
// A Change and its New belong to the hook during the call and must not be used afterwards. This is
// why it may hold the Context.
type Change[T any] struct {
	Context     context.Context
	New         *T     // the object to write; hooks may modify it
	Old         *T     // the stored object, must not be modified; nil on create
	Subresource string // the subresource of the request; empty: the object itself
	Names       names.Profile
	Features    *features.Set // the server's feature gates
	Rules       compat.Rules  // the server's compatibility rules, for built-in kinds

	// Version is the version that the client uses, by wire names; New and Old may be in another
	// version. Rules may apply only to clients of some version. For writes by the server itself it
	// is the hub.
	Version meta.GroupVersion

	// SchemaViolations holds the violations of the schema. Validate can read it to avoid checking values
	// again.
	SchemaViolations check.Violations

	// Violations collects the violations that Validate finds. If Default or Prepare adds a violation,
	// the write fails with a 500.
	check.Violations

	// Err is set by Default, Prepare, Validate or BeginDelete if the hook could not complete, for
	// example because a read failed. The write then fails: a *meta.Status is the answer, any other
	// error becomes a 500. Warn and Changed must not set it.
	Err error

	old any // Old as a pointer to the Go type, decoded by the first typed hook that runs
}

// The generic functions of this file are short, because the compiler makes a copy of each for every
// Go type.

// typedHook is a typed hook; new and old are pointers to its Go type, or nil.
type typedHook func(w *Change[meta.Object], new, old any)

// typedWarning is a typed Warn hook.
type typedWarning func(w *Change[meta.Object], new, old any) []string

// hookOf returns a hook on T as a typedHook, or nil if hook is nil.
func hookOf[T any](hook func(*Change[T])) typedHook {
	if hook == nil {
		return nil
	}
	return func(w *Change[meta.Object], new, old any) {
		own := changeOf[T](w, new, old)
		hook(own)
		w.Violations, w.Err = append(w.Violations, own.Violations...), own.Err
	}
}

// warningOf returns a Warn hook on T as a typedWarning, or nil if hook is nil.
func warningOf[T any](hook func(*Change[T]) []string) typedWarning {
	if hook == nil {
		return nil
	}
	return func(w *Change[meta.Object], new, old any) []string { return hook(changeOf[T](w, new, old)) }
}

// changeOf returns the Change for a hook on T, without the violations found so far.
func changeOf[T any](w *Change[meta.Object], new, old any) *Change[T] {
	own := &Change[T]{Context: w.Context, Subresource: w.Subresource, Names: w.Names, Features: w.Features, Rules: w.Rules, Version: w.Version, SchemaViolations: w.SchemaViolations}
	own.New, _ = new.(*T)
	own.Old, _ = old.(*T)
	return own
}

// typed adapts typed hooks to hooks on untyped objects. The view, which converts between trees and
// Go structs, is made when the first hook runs.
type typed struct {
	goType reflect.Type
	view   func() (*schema.View, error)
	schema *schema.Schema
}

func newTyped(of reflect.Type, s *schema.Schema, p names.Profile) *typed {
	return &typed{of, sync.OnceValues(func() (*schema.View, error) { return schema.NewView(of, p) }), s}
}

// objects returns the objects of a write as pointers to the Go type; old is nil on create. The
// error says that the new object does not fit the Go type.
func (t *typed) objects(w *Change[meta.Object]) (new, old any, err error) {
	view, err := t.view()
	if err != nil {
		return nil, nil, err
	}
	new = reflect.New(t.goType).Interface()
	if err := view.Into(w.New.Tree(), new); err != nil {
		return nil, nil, err
	}
	if w.Old == nil {
		return new, nil, nil
	}
	if w.old == nil {
		w.old = reflect.New(t.goType).Interface()
		if view.Into(w.Old.Tree(), w.old) != nil {
			w.old = reflect.New(t.goType).Interface() // written with another schema: hooks see an empty object
		}
	}
	return new, w.old, nil
}

// edit returns a hook that runs first and then the typed hook, which may modify the new object.
func (t *typed) edit(first func(*Change[meta.Object]), hook typedHook) func(*Change[meta.Object]) {
	if hook == nil {
		return first
	}
	return func(w *Change[meta.Object]) {
		if first != nil {
			first(w)
		}
		if w.Err != nil {
			return
		}
		own, old, err := t.objects(w)
		if err != nil {
			return // Validate reports the error
		}
		if hook(w, own, old); w.Err != nil {
			return
		}
		view, _ := t.view()
		tree, err := view.From(own)
		if err != nil {
			w.Err = fmt.Errorf("left an object that cannot be encoded: %w", err)
			return
		}
		t.schema.Update(w.New.Tree(), tree)
	}
}

// validate returns a Validate hook that runs first and then the typed hook.
func (t *typed) validate(first func(*Change[meta.Object]), hook typedHook) func(*Change[meta.Object]) {
	if hook == nil {
		return first
	}
	return func(w *Change[meta.Object]) {
		if first != nil {
			first(w)
		}
		if w.Err != nil {
			return
		}
		own, old, err := t.objects(w)
		if err != nil {
			w.Violations = append(w.Violations, decodeFault(err))
			return
		}
		hook(w, own, old)
	}
}

// warn returns a Warn hook that returns the warnings of first and of the typed hook.
func (t *typed) warn(first func(*Change[meta.Object]) []string, hook typedWarning) func(*Change[meta.Object]) []string {
	if hook == nil {
		return first
	}
	return func(w *Change[meta.Object]) (texts []string) {
		if first != nil {
			texts = first(w)
		}
		if own, old, err := t.objects(w); err == nil {
			texts = append(texts, hook(w, own, old)...)
		}
		return texts
	}
}

// hooks are the typed hooks of a definition; each may be nil.
type hooks struct {
	setDefaults, prepare, validate typedHook
	warn                           typedWarning
}

// appendTo adds the typed hooks to a behavior, to run after its own hooks.
func (h *hooks) appendTo(b *Behavior, t *typed) {
	b.Default = t.edit(b.Default, h.setDefaults)
	b.Prepare = t.edit(b.Prepare, h.prepare)
	b.Validate = t.validate(b.Validate, h.validate)
	b.Warn = t.warn(b.Warn, h.warn)
}

// decodeFault returns the cause for a value that does not have the type of its field.
func decodeFault(err error) meta.StatusCause {
	field, why, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		field, why = "", err.Error()
	}
	return meta.StatusCause{Reason: meta.CauseTypeInvalid, Field: field, Message: why}
}
