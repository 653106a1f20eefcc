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

// A stored object outlives the struct that it was written with. What a type makes of one of
// another shape is here: it is lifted when it is read, and what the type cannot show of it
// stays in the record.

// Fingerprint is a fingerprint of what the type makes of stored objects. What a type of the same
// shape has written is read as it stands.
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

// Unshown is what a type has no place for in a stored object. It stays in the record.
type Unshown struct {
	Unknown []string           // paths of fields that the type does not have
	Misfits []meta.StatusCause // values that are not of their fields' types
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
	unknown, misfits := v.Schema().Coerce(obj.Tree())
	if v.Schema().FillDefaults(obj.Tree()) != nil {
		obj = stored.Clone() // without: which ones were filled in is chance
		v.Schema().Coerce(obj.Tree())
	}
	return obj, Unshown{unknown, misfits}
}

// KeepUnshown returns what is stored of an object of the version where the record was stored
// and fitted is what FitStored made of that: what the version does not show stays as it
// was, but where now says something else. So FitStored makes now of it again. now and
// stored stay as they are.
func (v *Version) KeepUnshown(fitted, now, stored *meta.Object) *meta.Object {
	return meta.NewObject(keepFields(v.Schema(), fitted.Tree(), now.Clone().Tree(), stored.Tree()))
}

func keepFields(s *schema.Schema, fitted, now, stored map[string]any) map[string]any {
	out := make(map[string]any, len(stored))
	for _, side := range []map[string]any{now, stored} {
		for field := range side {
			if _, done := out[field]; done {
				continue
			}
			v := keep(below(s, field), emptied(s, field), get(fitted, field), get(now, field), get(stored, field))
			if _, gone := v.(absent); !gone {
				out[field] = v
			}
		}
	}
	return out
}

// emptied reports whether a field that is not there any more may be there and empty: a map,
// or a struct that is left out without anything in it. Any other struct goes as a whole.
func emptied(s *schema.Schema, field string) bool {
	if s != nil {
		if f := s.Struct.Field(field); f != nil && f.Schema.Struct != nil {
			return f.OmitZero && !f.Pointer
		}
	}
	b := below(s, field)
	return b != nil && b.Values != nil
}

// keep returns a value as it is stored, or absent.
func keep(s *schema.Schema, emptied bool, fitted, now, stored any) any {
	if same(now, fitted) {
		return meta.Clone(stored) // which is shared
	}
	switch was := stored.(type) {
	case map[string]any:
		shown, fits := fitted.(map[string]any)
		if _, none := fitted.(absent); none {
			fits = s != nil && s.Type == schema.Object && s.Wire == schema.Plain // it holds nothing that is shown
		}
		fields, ok := now.(map[string]any)
		_, gone := now.(absent)
		if fits && (ok || gone && emptied) {
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

// keepItems keeps what is not shown of the items that are still there: those of the same
// key, else those that say the same. Each of fitted was made of the one in its place.
func keepItems(s *schema.Schema, fitted, now, stored []any) []any {
	out := slices.Clone(now)
	if byKey(s, fitted) == nil || byKey(s, now) == nil {
		for i, j := range aligned(texts(now), texts(fitted)) {
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
			out[i] = keep(s.Items, false, fitted[j], item, stored[j])
		}
	}
	return out
}
