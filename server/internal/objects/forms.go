package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
)

// forms are how callers of a write's endpoint see its objects, for admission.
type forms Write

// body returns the version of the bodies of a sub-resource that are not the item, nil
// if they are.
func (f *forms) body() *resource.Version {
	if f.Sub == nil {
		return nil
	}
	return f.Sub.Body
}

// Kind implements admission.Forms.
func (f *forms) Kind(version meta.GroupVersion) (meta.GroupVersionKind, bool) {
	v := f.Version.VersionIn(version)
	if v == nil {
		return meta.GroupVersionKind{}, false
	}
	if b := f.body(); b != nil {
		return b.GVK(), true
	}
	return v.GVK(), true
}

// Show implements admission.Forms.
func (f *forms) Show(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error) {
	switch {
	case f.Sub != nil && f.Sub.Show != nil:
		return f.Sub.Show(obj), nil
	case f.body() != nil:
		return obj, nil
	}
	v := f.Version.VersionIn(version)
	if v == nil {
		return nil, fmt.Errorf("there is no version %s of %s", version, f.Version.Kind)
	}
	return v.Convert(ctx, obj)
}

// Take implements admission.Forms.
func (f *forms) Take(ctx context.Context, r *admission.Request, shown, changed *meta.Object, version meta.GroupVersion) error {
	v := f.body()
	if v == nil {
		v = f.Version.VersionIn(version)
	}
	if changed.APIVersion() != shown.APIVersion() || changed.Kind() != shown.Kind() {
		return errors.New("apiVersion and kind may not change")
	}
	if _, faults := v.Conform(changed); len(faults) > 0 {
		return v.DecodeError(faults)
	}
	if err := keepIdentity(shown, changed); err != nil {
		return err
	}
	if f.Sub != nil && f.Sub.Show != nil {
		f.Sub.Accept(r.Object, changed)
		return nil
	}
	began, err := v.FillIn(ctx, changed, shown, r.Subresource)
	if err != nil {
		return err
	}
	working := f.Version.Working()
	if v != working && f.body() == nil {
		if changed, err = working.Convert(ctx, changed); err != nil {
			return err
		}
		if changed, err = working.Merge(ctx, r.Object, began, changed); err != nil {
			return err
		}
	}
	if f.Sub != nil && f.Sub.Merge != nil && f.Sub.Act == nil {
		f.Sub.Accept(r.Object, changed)
		return nil
	}
	tree := r.Object.Tree()
	clear(tree)
	maps.Copy(tree, changed.Tree())
	return nil
}

// keepIdentity refuses that an object becomes another one, and puts back what only the
// server writes.
func keepIdentity(shown, changed *meta.Object) error {
	was, is := shown.Map("metadata"), changed.Map("metadata")
	if was == nil {
		return nil
	}
	if is == nil {
		return errors.New("the metadata is gone")
	}
	for _, f := range []string{"name", "namespace", "uid"} {
		if !meta.Equal(was[f], is[f]) {
			return fmt.Errorf("metadata.%s may not change", f)
		}
	}
	for _, f := range []string{"resourceVersion", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"} {
		keep(is, was, f)
	}
	return nil
}
