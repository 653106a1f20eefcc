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

	// Version is that of the caller, by wire names, whatever the hook sees: rules may
	// hold for who writes in one of the versions. The hub's in writes from inside.
	Version meta.GroupVersion

	// Found is what the schema found before Validate runs, which need not look again.
	Found check.Faults

	// Faults is what Validate finds. A fault that Default or Prepare adds fails the
	// write as an error of the program.
	check.Faults

	// Err is why Default, Prepare, Validate or Terminate could not do its work, such as
	// a read that failed. The write fails with it: a *meta.Status is the answer as it is,
	// any other error is a 500. Warn and Changed have no say in that.
	Err error

	old any // Old as typed hooks see it, made by the first of them
}

// typed makes hooks of T hooks of the tree. A typed view is made only for a hook
// that runs; schema.Go has found nothing wrong with T.
type typed[T any] struct {
	view   func() (*schema.View, error)
	schema *schema.Schema
}

// write returns a write as hooks of T see it. The error says that the new object
// does not fit the type.
func (t *typed[T]) write(w *Change[meta.Object]) (*Change[T], error) {
	view, err := t.view()
	if err != nil {
		return nil, err
	}
	own := &Change[T]{Context: w.Context, New: new(T), Subresource: w.Subresource, Names: w.Names, Features: w.Features, Version: w.Version, Found: w.Found}
	if err := view.Into(w.New.Tree(), own.New); err != nil {
		return nil, err
	}
	if w.Old == nil {
		return own, nil
	}
	if w.old == nil {
		old := new(T)
		if view.Into(w.Old.Tree(), old) != nil {
			old = new(T) // stored by an older definition
		}
		w.old = old
	}
	own.Old, _ = w.old.(*T)
	return own, nil
}

// edit returns a hook that changes the new object, after first.
func (t *typed[T]) edit(first func(*Change[meta.Object]), hook func(*Change[T])) func(*Change[meta.Object]) {
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
		own, err := t.write(w)
		if err != nil {
			return // Validate says what does not fit
		}
		hook(own)
		w.Faults = append(w.Faults, own.Faults...)
		if w.Err = own.Err; w.Err != nil {
			return
		}
		view, _ := t.view()
		tree, err := view.From(own.New)
		if err != nil {
			w.Err = fmt.Errorf("left an object that cannot be written: %w", err)
			return
		}
		t.schema.Update(w.New.Tree(), tree)
	}
}

// validate returns a hook that finds what first and hook find.
func (t *typed[T]) validate(first func(*Change[meta.Object]), hook func(*Change[T])) func(*Change[meta.Object]) {
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
		own, err := t.write(w)
		if err != nil {
			w.Faults = append(w.Faults, decodeFault(err))
			return
		}
		hook(own)
		w.Faults, w.Err = append(w.Faults, own.Faults...), own.Err
	}
}

// warn returns a hook that warns of what first and hook warn of.
func (t *typed[T]) warn(first func(*Change[meta.Object]) []string, hook func(*Change[T]) []string) func(*Change[meta.Object]) []string {
	if hook == nil {
		return first
	}
	return func(w *Change[meta.Object]) (texts []string) {
		if first != nil {
			texts = first(w)
		}
		if own, err := t.write(w); err == nil {
			texts = append(texts, hook(own)...)
		}
		return texts
	}
}

// typedHooks puts the hooks of a definition behind those of the behavior.
func typedHooks[T any](d Definition[T], b *Behavior, s *schema.Schema, p names.Profile) {
	t := &typed[T]{sync.OnceValues(func() (*schema.View, error) { return schema.NewView(reflect.TypeFor[T](), p) }), s}
	b.Default = t.edit(b.Default, d.Default)
	b.Prepare = t.edit(b.Prepare, d.Prepare)
	b.Validate = t.validate(b.Validate, d.Validate)
	b.Warn = t.warn(b.Warn, d.Warn)
}

// decodeFault is the cause for a value that does not have its field's type.
func decodeFault(err error) meta.Cause {
	field, why, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		field, why = "", err.Error()
	}
	return meta.Cause{Reason: meta.CauseTypeInvalid, Field: field, Message: why}
}
