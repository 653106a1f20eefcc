package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// A stored object may have been written by a release with types of another shape. This file
// upgrades such an object when it is read, and keeps the fields that the current type cannot show
// in the record when the object is written again.

// Fingerprint returns a fingerprint of the schemas and versions that determine how stored objects are
// read. A record that a type of the same shape wrote needs neither UpgradeStored nor FitStored.
func (t *Type) Fingerprint() string {
	shapes := make([]string, 0, len(t.Versions))
	for _, v := range t.Versions {
		shapes = append(shapes, v.GVK().String()+" "+v.Schema().Fingerprint())
	}
	slices.Sort(shapes)
	words := []string{"[" + strings.Join(shapes, " ") + "]", t.Hub.GVK().APIVersion(), t.Storage.GVK().APIVersion(), strconv.FormatBool(t.Upgrade != nil)}
	sum := sha256.Sum256([]byte(strings.Join(words, " ") + "\n"))
	return hex.EncodeToString(sum[:8])
}

// Unshown lists the parts of a stored object that the type cannot represent. They stay in the
// record.
type Unshown struct {
	Unknown []string           // paths of fields that the type does not have
	Misfits []meta.StatusCause // values of another type than their field
}

// Any reports whether there are any such parts.
func (u Unshown) Any() bool { return len(u.Unknown)+len(u.Misfits) > 0 }

// UpgradeStored returns a copy of a stored object after the kind's Upgrade hook, and the version of
// the result. It does not modify obj. The error is a *ConversionError.
func (t *Type) UpgradeStored(obj *meta.Object) (*meta.Object, *Version, error) {
	tree, err := obj.Tree(), error(nil)
	if t.Upgrade != nil {
		tree, err = recoverPanic(func(tree map[string]any) (map[string]any, error) { return tree, t.Upgrade(meta.NewObject(tree)) }, obj.Clone().Tree())
	}
	v := t.ByAPIVersion(meta.NewObject(tree).APIVersion())
	if err == nil && v == nil {
		err = errUnknownVersion
	}
	if err != nil {
		key := meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}
		return nil, nil, &ConversionError{Resource: t.GroupResource(), Key: key, From: obj.APIVersion(), To: t.Hub.GVK().APIVersion(), Err: err}
	}
	return meta.NewObject(tree), v, nil
}

// FitStored returns a copy of a stored object as version v could have written it: without fields
// that v lacks, and with the defaults of v. Unshown lists what it removed.
func (v *Version) FitStored(stored *meta.Object) (*meta.Object, Unshown) {
	obj := stored.Clone()
	unknown, misfits := v.Schema().Coerce(obj.Tree())
	if v.Schema().FillDefaults(obj.Tree()) != nil {
		obj = stored.Clone() // the defaults exceed the limit; use none, because those filled in are random
		v.Schema().Coerce(obj.Tree())
	}
	return obj, Unshown{unknown, misfits}
}

// KeepUnshown returns the object to store for now, an object of version v. stored is the current
// stored object and fitted the result of FitStored for it. Parts of stored that v cannot show are
// kept unless now changes the value that contains them, so that FitStored of the result is now
// again. The arguments are not modified.
func (v *Version) KeepUnshown(fitted, now, stored *meta.Object) *meta.Object {
	return meta.NewObject(keepFields(v.Schema(), fitted.Tree(), now.Clone().Tree(), stored.Tree()))
}

// keepFields is keepValue for the fields of an object.
func keepFields(s *schema.Schema, fitted, now, stored map[string]any) map[string]any {
	out := make(map[string]any, len(stored))
	for _, side := range []map[string]any{now, stored} {
		for field := range side {
			if _, done := out[field]; done {
				continue
			}
			v := keepValue(fieldSchema(s, field), canBeEmpty(s, field), fieldOrAbsent(fitted, field), fieldOrAbsent(now, field), fieldOrAbsent(stored, field))
			if _, gone := v.(absent); !gone {
				out[field] = v
			}
		}
	}
	return out
}

// canBeEmpty reports whether a field that an object lacks may still be stored, with nothing in it
// that the type shows. This holds for maps, and for structs that are omitted if they are empty. Any
// other struct is removed as a whole, with its unknown fields.
func canBeEmpty(s *schema.Schema, field string) bool {
	if s != nil {
		if f := s.Struct.Field(field); f != nil && f.Schema.Struct != nil {
			return f.OmitZero && !f.Pointer
		}
	}
	b := fieldSchema(s, field)
	return b != nil && b.Values != nil
}

// keepValue returns the value to store, or absent.
func keepValue(s *schema.Schema, canBeEmpty bool, fitted, now, stored any) any {
	if same(now, fitted) {
		return meta.Clone(stored) // stored belongs to the shared record
	}
	switch was := stored.(type) {
	case map[string]any:
		shown, fits := fitted.(map[string]any)
		if _, none := fitted.(absent); none {
			fits = s != nil && s.Type == schema.Object && s.Wire == schema.Plain // the stored value may be an object of which the type shows nothing
		}
		fields, ok := now.(map[string]any)
		_, gone := now.(absent)
		if fits && (ok || gone && canBeEmpty) {
			return orAbsent(gone, keepFields(s, shown, fields, was))
		}
	case []any:
		shown, fits := fitted.([]any)
		if items, ok := now.([]any); ok && fits && len(shown) == len(was) {
			return keepItems(s, shown, items, was)
		}
	}
	return now
}

// keepItems keeps the unshown parts of list items that now still has. Items match by key, or if the
// list has no keys by their content. Each item of fitted was made from the item of stored at the
// same index.
func keepItems(s *schema.Schema, fitted, now, stored []any) []any {
	out := slices.Clone(now)
	if byKey(s, fitted) == nil || byKey(s, now) == nil {
		for i, j := range alignItems(encodeItems(now), encodeItems(fitted)) {
			if j >= 0 {
				out[i] = meta.Clone(stored[j])
			}
		}
		return out
	}
	place := make(map[string]int, len(fitted))
	for j, item := range fitted {
		place[keyOf(s, item)] = j
	}
	for i, item := range now {
		if j, was := place[keyOf(s, item)]; was {
			out[i] = keepValue(s.Items, false, fitted[j], item, stored[j])
		}
	}
	return out
}
