package resource

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// change is a write as hooks on untyped objects see it.
type change = registry.Change[meta.Object]

// NewChange returns the Change for a write of obj by a client of version v. old is the stored
// object, or nil on create; subresource is empty for the object itself.
func (v *Version) NewChange(ctx context.Context, obj, old *meta.Object, subresource string) *registry.Change[meta.Object] {
	return &change{Context: ctx, New: obj, Old: old, Subresource: subresource, Names: v.Names, Features: v.Features, Rules: v.Rules, Version: v.GroupVersion()}
}

// BeginDeletion runs the kind's BeginDelete hook on an object whose deletion begins but which is not
// removed yet.
func (v *Version) BeginDeletion(w *change) error { return v.runEdit("BeginDelete", v.BeginDelete, w) }

// runHook runs a hook; nil is a no-op. If the hook fails, the error is the Status that it set, or a
// 500 with the cause.
func (v *Version) runHook(name string, hook func(*change), w *change) error {
	w.Violations, w.Err = nil, nil
	if hook == nil {
		return nil
	}
	hook(w)
	if status := (*meta.Status)(nil); w.Err == nil || errors.As(w.Err, &status) {
		return w.Err
	}
	return meta.Internal(fmt.Errorf("hook %s of %s: %w", name, v.GVK(), w.Err))
}

// runEdit runs a hook that modifies the new object. If the hook adds violations, runEdit returns a
// 500: only violations of Validate are reported to the caller.
func (v *Version) runEdit(name string, hook func(*change), w *change) error {
	if err := v.runHook(name, hook, w); err != nil || len(w.Violations) == 0 {
		return err
	}
	return meta.Internal(fmt.Errorf("hook %s of %s added a violation, which only Validate may do: %s: %s", name, v.GVK(), w.Violations[0].Field, w.Violations[0].Message))
}
