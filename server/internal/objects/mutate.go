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

// mutate runs Mutate and returns the new object, which belongs to the write, and the live object of entry, which is
// shared and may be nil. Both are in the working version, in which the fields that came through a subresource are
// merged into a copy of the live object.
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
		err = conversionRefusal(w.Sub.Body, in, err)
	}
	return obj, live, err
}

// toWorking converts in, an object in the caller's version, to the working version. visibleLive is the live object in
// the caller's version, live in the working version; both may be nil. Fields that the caller's version cannot
// represent keep their live value, and a default of the caller's version does not count as a change.
func (s *Store) toWorking(ctx context.Context, w *Write, in, visibleLive, live *meta.Object) (*meta.Object, error) {
	v := w.Version
	began, err := v.FillIn(ctx, in, visibleLive, w.subresource(), w.Applied)
	if err != nil {
		return nil, err
	}
	if err := validateVersion(ctx, w, in, visibleLive); err != nil {
		return nil, err
	}
	out, err := v.Hub.Convert(ctx, in)
	if err = conversionRefusal(v, in, err); err != nil || live == nil {
		return out, err
	}
	return v.Hub.Merge(ctx, live, began, out)
}

// conversionRefusal returns the Status for a caller whose object ToHub rejects, if err is such an error, and err
// otherwise. v is the version of the object.
func conversionRefusal(v *resource.Version, in *meta.Object, err error) error {
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

// validateVersion validates an object against the schema of the caller's version, before it is converted to the hub,
// which has its own rules. Violations that the live object has in the same version are not reported, because the
// caller did not cause them.
func validateVersion(ctx context.Context, w *Write, in, visibleLive *meta.Object) error {
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
