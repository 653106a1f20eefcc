package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"orch.io/controlplane/api/meta"
)

// A stored object outlives the struct that it was written with. What a type makes of one of
// another shape is here: it is lifted when it is read, and what the type cannot show of it
// stays in the record.

// Shape is a fingerprint of what the type makes of stored objects. What every record was
// written by types of one shape need not be looked at.
func (t *Type) Shape() string {
	sum := sha256.New()
	shapes := make([]string, 0, len(t.Versions))
	for _, v := range t.Versions {
		shapes = append(shapes, v.GVK().APIVersion()+" "+v.Schema().Shape())
	}
	slices.Sort(shapes)
	fmt.Fprintln(sum, shapes, t.Hub.GVK().APIVersion(), t.Storage.GVK().APIVersion(), t.Upgrade != nil)
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Unshown is what a type has no place for in a stored object. It stays in the record.
type Unshown struct {
	Unknown []string     // paths of fields that the type does not have
	Misfits []meta.Cause // values that are not of their fields' types
}

// Any reports whether there is anything.
func (u Unshown) Any() bool { return len(u.Unknown)+len(u.Misfits) > 0 }

// UpgradeStored returns a stored object after the kind's Upgrade, and the version that it is
// of then. The object stays as it is. The error is a *ConversionError.
func (t *Type) UpgradeStored(obj *meta.Object) (*meta.Object, *Version, error) {
	tree, err := obj.Tree(), error(nil)
	if t.Upgrade != nil {
		tree, err = run(func(tree map[string]any) (map[string]any, error) { return tree, t.Upgrade(meta.NewObject(tree)) }, obj.Clone().Tree())
	}
	v := t.ByAPIVersion(meta.NewObject(tree).APIVersion())
	if err == nil && v == nil {
		err = errNoVersion
	}
	if err != nil {
		key := meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}
		return nil, nil, &ConversionError{Resource: t.GroupResource(), Key: key, From: obj.APIVersion(), To: t.Hub.GVK().APIVersion(), Err: err}
	}
	return meta.NewObject(tree), v, nil
}

// FitStored returns a stored object as the version could have written it: with its fields
// alone, and its defaults. The object stays as it is.
func (v *Version) FitStored(stored *meta.Object) (*meta.Object, Unshown) {
	obj := stored.Clone()
	unknown, misfits := v.Schema().Fit(obj.Tree())
	if v.Schema().FillDefaults(obj.Tree()) != nil {
		obj = stored.Clone() // without: which ones were filled in is chance
		v.Schema().Fit(obj.Tree())
	}
	return obj, Unshown{unknown, misfits}
}

// KeepUnshown returns what is stored of an object of the version where the record was stored
// and fitted is what FitStored made of that: what the version does not show stays as it
// was, but where now says something else. now and stored stay as they are.
func (v *Version) KeepUnshown(fitted, now, stored *meta.Object) *meta.Object {
	return meta.NewObject(mergeFields(v.Schema(), fitted.Tree(), now.Clone().Tree(), stored.Tree()))
}
