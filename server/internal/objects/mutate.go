package objects

import (
	"context"
	"errors"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
)

// mutate makes the new object of a write, its own, and returns it with the live one
// of the entry, nil if there is none. Both are of the working version: there, what
// came through a sub-resource is taken into the live object.
func (s *Store) mutate(ctx context.Context, w *Write, entry *objectcache.Entry) (obj, live *meta.Object, err error) {
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
	err = w.Sub.Accept(ctx, obj, in)
	if w.Sub.Body != nil {
		err = refused(w.Sub.Body, in, err)
	}
	return obj, live, err
}

// toWorking makes an object of the caller's version, which visibleLive is the live
// object in, one of the working version. What the caller's version cannot say stays as
// it is in the live one; its defaults are no change of it.
func (s *Store) toWorking(ctx context.Context, w *Write, in, visibleLive, live *meta.Object) (*meta.Object, error) {
	v := w.Version
	began, err := v.FillIn(ctx, in, visibleLive, w.subresource(), w.Applied)
	if err != nil {
		return nil, err
	}
	if err := validateForm(ctx, w, in, visibleLive); err != nil {
		return nil, err
	}
	out, err := v.Hub.Convert(ctx, in)
	if err = refused(v, in, err); err != nil || live == nil {
		return out, err
	}
	return v.Hub.Merge(ctx, live, began, out)
}

// refused makes of the error of a conversion what the caller is told of an object of his
// version that ToHub refuses.
func refused(v *resource.Version, in *meta.Object, err error) error {
	var conversion *resource.ConversionError
	if !errors.As(err, &conversion) || conversion.Stack() != nil {
		return err
	}
	var faulty *check.Error
	if errors.As(conversion.Err, &faulty) {
		return meta.Invalid(v.GroupKind(), in.Name(), faulty.Faults)
	}
	return v.CannotHandle(conversion.Err.Error())
}

// validateForm holds an object of the caller's version to the rules of that version's
// schema, before it becomes one of the hub, which has rules of its own. What the
// version shows of the live object is not the caller's fault.
func validateForm(ctx context.Context, w *Write, in, visibleLive *meta.Object) error {
	v := w.Version
	var old map[string]any
	if visibleLive != nil {
		old = visibleLive.Tree()
	}
	if w.Sub != nil {
		accepted := visibleLive.Clone()
		if err := w.Sub.Accept(ctx, accepted, in); err != nil {
			return err
		}
		in = accepted
	}
	causes := v.Schema().Validate(in.Tree(), old)
	if len(causes) > 0 && old != nil {
		shown := v.Schema().Validate(old, old)
		causes = slices.DeleteFunc(causes, func(c meta.StatusCause) bool { return slices.Contains(shown, c) })
	}
	if w.subresource() == "status" && v.ConformOnRead {
		resource.BelowStatus(causes)
	}
	if len(causes) > 0 {
		return meta.Invalid(v.GroupKind(), in.Name(), causes)
	}
	return nil
}
