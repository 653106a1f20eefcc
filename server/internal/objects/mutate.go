package objects

import (
	"context"
	"errors"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/watch"
)

// mutate makes the new object of a write, its own, and returns it with the live one
// of the entry, nil if there is none. Both are of the working version: there, what
// came through a sub-resource is taken into the live object.
func (s *Store) mutate(ctx context.Context, w *Write, entry *watch.Entry) (obj, live *meta.Object, err error) {
	v, working := w.Version.ItemVersion(w.Sub), w.Version.Working()
	var visibleLive *meta.Object
	if entry != nil {
		if live, err = Object(ctx, entry, working); err != nil {
			return nil, nil, err
		}
		if visibleLive = live; v != working {
			if visibleLive, err = Object(ctx, entry, v); err != nil {
				return nil, nil, err
			}
		}
	}
	in, err := w.Mutate(visibleLive)
	if err == nil && v != working {
		in, err = s.toWorking(ctx, w, in, visibleLive, live)
	}
	if err != nil || w.Sub == nil {
		return in, live, err
	}
	obj = live.Clone()
	w.Sub.Accept(obj, in)
	return obj, live, nil
}

// toWorking makes an object of the caller's version, which visibleLive is the live
// object in, one of the working version. What the caller's version cannot say stays as
// it is in the live one; its defaults are no change of it.
func (s *Store) toWorking(ctx context.Context, w *Write, in, visibleLive, live *meta.Object) (*meta.Object, error) {
	v := w.Version
	began, err := v.FillIn(ctx, in, visibleLive, w.subresource())
	if err != nil {
		return nil, err
	}
	if err := validateForm(w, in, visibleLive); err != nil {
		return nil, err
	}
	out, err := v.Hub.Convert(ctx, in)
	var conversion *resource.ConversionError
	if errors.As(err, &conversion) && conversion.Stack() == nil {
		return nil, refusal(v, in, conversion.Err)
	}
	if err != nil || live == nil {
		return out, err
	}
	return v.Hub.Merge(ctx, live, began, out)
}

// refusal is what the caller is told of an object of his version that ToHub refuses.
func refusal(v *resource.Version, in *meta.Object, why error) error {
	var faulty *check.Error
	if errors.As(why, &faulty) {
		return meta.Invalid(v.GroupKind(), in.Name(), faulty.Faults)
	}
	return v.CannotHandle(why.Error())
}

// validateForm holds an object of the caller's version to the rules of that version's
// schema, before it becomes one of the hub, which has rules of its own. What the
// version shows of the live object is not the caller's fault.
func validateForm(w *Write, in, visibleLive *meta.Object) error {
	v := w.Version
	var old map[string]any
	if visibleLive != nil {
		old = visibleLive.Tree()
	}
	if w.Sub != nil {
		accepted := visibleLive.Clone()
		w.Sub.Accept(accepted, in)
		in = accepted
	}
	causes := v.Schema().Validate(in.Tree(), old)
	if len(causes) > 0 && old != nil {
		shown := v.Schema().Validate(old, old)
		causes = slices.DeleteFunc(causes, func(c meta.Cause) bool { return slices.Contains(shown, c) })
	}
	if len(causes) > 0 {
		return meta.Invalid(v.GroupKind(), in.Name(), causes)
	}
	return nil
}
