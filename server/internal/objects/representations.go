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

// representations implements admission.Representations for a write: it converts objects to the versions and subresource bodies
// that callers of the endpoint see.
type representations Write

// sub returns the subresource as it is defined in a version, or nil if the write is to the object itself.
func (f *representations) sub(version meta.GroupVersion) *resource.Subresource {
	if f.Sub == nil || f.Sub.Body == nil {
		return f.Sub
	}
	if v := f.Version.VersionIn(version); v != nil {
		if s := v.Subresource(f.Sub.Name); s != nil {
			return s
		}
	}
	return f.Sub
}

// body returns the version of the subresource bodies that are not the item, or nil if the bodies are the item.
func (f *representations) body(version meta.GroupVersion) *resource.Version {
	if s := f.sub(version); s != nil {
		return s.Body
	}
	return nil
}

// Kind implements admission.Representations.
func (f *representations) Kind(version meta.GroupVersion) (meta.GroupVersionKind, bool) {
	v := f.Version.VersionIn(version)
	if v == nil {
		return meta.GroupVersionKind{}, false
	}
	if b := f.body(version); b != nil {
		return b.GVK(), true
	}
	return v.GVK(), true
}

// Show implements admission.Representations.
func (f *representations) Show(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error) {
	switch {
	case f.Sub != nil && f.Sub.Show != nil:
		return f.sub(version).Shown(ctx, obj)
	case f.body(version) != nil:
		return f.body(version).ConvertIfNeeded(ctx, obj)
	}
	v := f.Version.VersionIn(version)
	if v == nil {
		return nil, fmt.Errorf("there is no version %s of %s", version, f.Version.Kind)
	}
	return v.Convert(ctx, obj)
}

// Merge implements admission.Representations.
func (f *representations) Merge(shown *meta.Object, patch map[string]any, version meta.GroupVersion) (*meta.Object, error) {
	v := f.body(version)
	if v == nil {
		v = f.Version.VersionIn(version)
	}
	if v == nil {
		return nil, fmt.Errorf("there is no version %s of %s", version, f.Version.Kind)
	}
	patch = maps.Clone(patch)
	patch["apiVersion"], patch["kind"] = v.GVK().APIVersion(), v.Kind
	tree, err := v.FieldManager(context.Background()).ApplyConfiguration(shown.Tree(), patch, v.GVK().APIVersion()) // needs no conversion
	if err != nil {
		return nil, err
	}
	return meta.NewObject(tree), nil
}

// Take implements admission.Representations.
func (f *representations) Take(ctx context.Context, r *admission.Request, shown, changed *meta.Object, version meta.GroupVersion) ([]string, error) {
	v := f.body(version)
	if v == nil {
		v = f.Version.VersionIn(version)
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if changed.String(field) == "" {
			changed.Set(shown.String(field), field)
		}
		if changed.String(field) != shown.String(field) {
			return nil, errors.New("apiVersion and kind may not change")
		}
	}
	dropped, faults := v.Normalize(changed)
	if len(faults) > 0 {
		return nil, errors.New(v.DecodeError(faults).Error()) // a plain error, because the caller did not cause it
	}
	if v.Schema() == nil || !v.Schema().Struct.Canonical() {
		dropped = nil
	}
	if err := keepIdentity(v.GroupKind(), shown, changed, r.Operation == admission.Create && f.Sub == nil); err != nil {
		return nil, err
	}
	if f.Sub != nil && f.Sub.Show != nil {
		return dropped, f.sub(version).Accept(ctx, r.Object, changed)
	}
	began, err := v.FillIn(ctx, changed, shown, r.Subresource, false)
	if err != nil {
		return nil, err
	}
	if f.body(version) != nil {
		if changed, err = f.Sub.Body.ConvertIfNeeded(ctx, changed); err != nil {
			return nil, err
		}
	}
	working := f.Version.Working()
	if v != working && f.body(version) == nil {
		if changed, err = working.Convert(ctx, changed); err != nil {
			return nil, err
		}
		if changed, err = working.Merge(ctx, r.Object, began, changed); err != nil {
			return nil, err
		}
	}
	if f.Sub != nil && f.Sub.Merge != nil && f.Sub.Act == nil {
		return dropped, f.Sub.Accept(ctx, r.Object, changed)
	}
	tree := r.Object.Tree()
	clear(tree)
	maps.Copy(tree, changed.Tree())
	return dropped, nil
}

// keepIdentity returns an error if admission changed the identity of an object, and restores the metadata that only
// the server writes. Admission may rename a new object (isNew).
func keepIdentity(kind meta.GroupKind, shown, changed *meta.Object, isNew bool) error {
	was := shown.Map("metadata")
	if was == nil {
		return nil
	}
	is := changed.Map("metadata")
	if is == nil {
		is = map[string]any{}
		changed.Set(is, "metadata")
	}
	switch {
	case changed.Name() == "" && shown.Name() != "":
		return meta.Invalid(kind, "", []meta.StatusCause{{Reason: meta.CauseRequired, Field: "metadata.name", Message: "Required value: name or generateName is required"}})
	case changed.Name() != shown.Name() && !isNew:
		return errors.New("metadata.name may not change")
	case changed.Namespace() != "" && changed.Namespace() != shown.Namespace():
		return meta.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case changed.UID() != "" && shown.UID() != "" && changed.UID() != shown.UID() && !isNew:
		return errors.New("metadata.uid may not change")
	}
	for _, f := range append([]string{"namespace", "managedFields"}, identity...) {
		copyField(is, was, f)
	}
	return nil
}
