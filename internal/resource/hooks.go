package resource

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// change is a write as the hooks on trees see it.
type change = registry.Change[meta.Object]

// NewChange returns the write of an object by a caller of the version; old is nil on
// create, subresource empty for the object itself.
func (v *Version) NewChange(ctx context.Context, obj, old *meta.Object, subresource string) *registry.Change[meta.Object] {
	return &change{Context: ctx, New: obj, Old: old, Subresource: subresource, Names: v.Names, Features: v.Features, Rules: v.Rules, Version: v.GroupVersion()}
}

// BeginDeletion runs the kind's BeginDelete on an object whose deletion begins.
func (v *Version) BeginDeletion(w *change) error { return v.runEdit("Terminate", v.BeginDelete, w) }

// runHook runs a hook, nil if there is none. The error says that it could not do its
// work: a Status of its own, or 500.
func (v *Version) runHook(name string, hook func(*change), w *change) error {
	w.Violations, w.Err = nil, nil
	if hook == nil {
		return nil
	}
	hook(w)
	if status := (*meta.Status)(nil); w.Err == nil || errors.As(w.Err, &status) {
		return w.Err
	}
	return meta.Internal(fmt.Errorf("the hook %s of %s: %w", name, v.GVK(), w.Err))
}

// runEdit runs a hook that changes the new object. Faults that it adds are an error,
// 500, since nobody would be told of them.
func (v *Version) runEdit(name string, hook func(*change), w *change) error {
	if err := v.runHook(name, hook, w); err != nil || len(w.Violations) == 0 {
		return err
	}
	return meta.Internal(fmt.Errorf("the hook %s of %s: added a fault, which only Validate may do: %s: %s", name, v.GVK(), w.Violations[0].Field, w.Violations[0].Message))
}
