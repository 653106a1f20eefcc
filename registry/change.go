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

// Change is a write of an object as the hooks of its kind see it. T is the kind's
// Go type, or meta.Object for hooks that work on the tree.
//
// A Change is the hook's own for the time of the call. It carries the context for
// that reason alone.
type Change[T any] struct {
	Context     context.Context
	New         *T     // the object as it shall be
	Old         *T     // as it is stored, not to be changed; nil on create
	Subresource string // that the write came through; empty: the object itself
	Names       names.Profile
	Features    *features.Set // of the server
	Rules       compat.Rules  // of the server, for built-in kinds

	// Version is that of the caller, by wire names, whatever the hook sees: rules may
	// hold for who writes in one of the versions. The hub's in writes from inside.
	Version meta.GroupVersion

	// SchemaViolations is what the schema found before Validate runs, which need not look again.
	SchemaViolations check.Violations

	// Faults is what Validate finds. A fault that Default or Prepare adds fails the
	// write as an error of the program.
	check.Violations

	// Err is why Default, Prepare, Validate or BeginDelete could not do its work, such as
	// a read that failed. The write fails with it: a *meta.Status is the answer as it is,
	// any other error is a 500. Warn and Changed have no say in that.
	Err error

	old any // Old as typed hooks see it, made by the first of them
}

// Little stands in generic functions here: there is a copy of each for every Go type.

// typedHook is a hook whose objects are pointers to its Go type.
type typedHook func(w *Change[meta.Object], new, old any)

// typedWarning is one that warns.
type typedWarning func(w *Change[meta.Object], new, old any) []string

// hookOf returns a hook of T; nil if there is none.
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

// warningOf is hookOf for one that warns.
func warningOf[T any](hook func(*Change[T]) []string) typedWarning {
	if hook == nil {
		return nil
	}
	return func(w *Change[meta.Object], new, old any) []string { return hook(changeOf[T](w, new, old)) }
}

func changeOf[T any](w *Change[meta.Object], new, old any) *Change[T] {
	own := &Change[T]{Context: w.Context, Subresource: w.Subresource, Names: w.Names, Features: w.Features, Rules: w.Rules, Version: w.Version, SchemaViolations: w.SchemaViolations}
	own.New, _ = new.(*T)
	own.Old, _ = old.(*T)
	return own
}

// typed makes typed hooks those of the tree. A typed view is made only for a hook
// that runs; schema.Go has found nothing wrong with the type.
type typed struct {
	of     reflect.Type
	view   func() (*schema.View, error)
	schema *schema.Schema
}

func newTyped(of reflect.Type, s *schema.Schema, p names.Profile) *typed {
	return &typed{of, sync.OnceValues(func() (*schema.View, error) { return schema.NewView(of, p) }), s}
}

// objects returns the objects of a write as typed hooks see them; old is nil on create. The
// error says that the new object does not fit the type.
func (t *typed) objects(w *Change[meta.Object]) (new, old any, err error) {
	view, err := t.view()
	if err != nil {
		return nil, nil, err
	}
	new = reflect.New(t.of).Interface()
	if err := view.Into(w.New.Tree(), new); err != nil {
		return nil, nil, err
	}
	if w.Old == nil {
		return new, nil, nil
	}
	if w.old == nil {
		w.old = reflect.New(t.of).Interface()
		if view.Into(w.Old.Tree(), w.old) != nil {
			w.old = reflect.New(t.of).Interface() // stored by an older definition
		}
	}
	return new, w.old, nil
}

// edit returns a hook that changes the new object, after first.
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
			return // Validate says what does not fit
		}
		if hook(w, own, old); w.Err != nil {
			return
		}
		view, _ := t.view()
		tree, err := view.From(own)
		if err != nil {
			w.Err = fmt.Errorf("left an object that cannot be written: %w", err)
			return
		}
		t.schema.Update(w.New.Tree(), tree)
	}
}

// validate returns a hook that finds what first and hook find.
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

// warn returns a hook that warns of what first and hook warn of.
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

// hooks are the typed hooks of a definition; nil is none.
type hooks struct {
	setDefaults, prepare, validate typedHook
	warn                           typedWarning
}

// behind puts the hooks behind those of a behavior.
func (h *hooks) behind(b *Behavior, t *typed) {
	b.Default = t.edit(b.Default, h.setDefaults)
	b.Prepare = t.edit(b.Prepare, h.prepare)
	b.Validate = t.validate(b.Validate, h.validate)
	b.Warn = t.warn(b.Warn, h.warn)
}

// decodeFault is the cause for a value that does not have its field's type.
func decodeFault(err error) meta.StatusCause {
	field, why, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		field, why = "", err.Error()
	}
	return meta.StatusCause{Reason: meta.CauseTypeInvalid, Field: field, Message: why}
}
