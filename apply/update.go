package apply

import (
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
)

// Update records in obj's metadata.managedFields that the writer owns what obj
// has and live has not, or has otherwise. live is nil on create. It is for every
// write but Apply. Both may be of another version than the writer's.
//
// A managedFields list in obj replaces the owners where it is valid; one that is
// missing, empty or broken leaves those of live, and one with a single empty
// entry clears them: then the writer owns what it changes with the same write,
// and nobody anything else. With ClearedOwners nobody owns anything then. Owners of an object that has none are not recorded
// again before the next Apply; neither are changes of what does not fit the
// schema. A sub-resource cannot set managedFields.
func (t *Tracker) Update(live, obj *meta.Object, w Write) error {
	typing, err := t.typing(w.APIVersion)
	if err != nil {
		return err
	}
	es, reset, err := t.owners(live, obj, w)
	if err != nil {
		return err
	}
	if len(es) == 0 && live != nil && (!reset || t.config.ClearedOwners) {
		obj.Delete("metadata", "managedFields")
		return nil
	}
	old := typing.empty(obj.Tree(), w.APIVersion)
	if live != nil {
		old = plain(live)
	}
	recorded, err := t.record(es, old, plain(obj), w)
	if mismatch := (*mismatch)(nil); errors.As(err, &mismatch) {
		recorded = es // what cannot be told apart stays with those who have it
	} else if err != nil {
		return err
	}
	return t.store(obj, recorded)
}

// record returns the owners after w has made new out of old.
func (t *Tracker) record(es entries, old, new map[string]any, w Write) (entries, error) {
	c := &changes{t: t, old: old, new: new, by: w}
	es, _, err := t.take(es, nil, c, true)
	if err != nil {
		return nil, err
	}
	d, err := c.at(w.APIVersion)
	if err != nil {
		return nil, err
	}
	set := d.set
	if !set.Empty() {
		set = set.Difference(t.nobodys)
	}
	if set.Empty() {
		return es, nil
	}
	self := w.entry(opUpdate)
	if e := es.find(self); e != nil {
		self = e
		set = set.Union(e.set)
	} else {
		es = append(es, self)
	}
	if self.set == nil || !set.Equals(self.set) {
		self.own(set)
	}
	self.wrote(w)
	return capUpdaters(es), nil
}

// owners returns the entries to start from, and whether the writer cleared them.
func (t *Tracker) owners(live, obj *meta.Object, w Write) (es entries, reset bool, err error) {
	if live == nil {
		return nil, false, nil // the writer owns all of a new object, whatever its list says
	}
	if w.Subresource == "" {
		list, _ := obj.Get("metadata", "managedFields")
		given, _ := list.([]any)
		if isReset(given) {
			return nil, true, nil
		}
		es, err := t.read(given)
		if err == nil && len(es) > 0 {
			return es, false, t.checkNames(obj, es)
		}
	}
	es, err = t.read(live.List("metadata", "managedFields"))
	if err != nil {
		return nil, false, nil // what cannot be read is worth no failure: tracking starts again
	}
	return es, false, nil
}

// isReset reports whether list is the one empty entry that clears the owners.
func isReset(list []any) bool {
	if len(list) != 1 {
		return false
	}
	m, ok := list[0].(map[string]any)
	if !ok {
		return list[0] == nil
	}
	for _, v := range m {
		if v != nil && v != "" {
			return false
		}
	}
	return true
}

// checkNames refuses entries whose names no request could have.
func (t *Tracker) checkNames(obj *meta.Object, es entries) error {
	var causes []meta.Cause
	for i, e := range es {
		at := fmt.Sprintf("metadata.managedFields[%d].", i)
		causes = append(causes, checkName(e.manager, at+"manager", false)...)
		if len(e.subresource) > 2*maxManager {
			causes = append(causes, meta.Cause{Reason: meta.CauseTooLong, Field: at + "subresource", Message: fmt.Sprintf("Too long: may not be more than %d bytes", 2*maxManager)})
		}
	}
	if causes == nil {
		return nil
	}
	return meta.Invalid(meta.GroupKind{Group: meta.ParseAPIVersion(obj.APIVersion()).Group, Kind: obj.Kind()}, obj.Name(), causes)
}

// store writes es into obj.
func (t *Tracker) store(obj *meta.Object, es entries) error {
	list, err := t.write(es)
	if err != nil {
		return meta.Internal(err)
	}
	if list == nil {
		obj.Delete("metadata", "managedFields")
		return nil
	}
	obj.Metadata()["managedFields"] = list
	return nil
}

// emptyLike returns an object with nothing but obj's kind.
func emptyLike(obj *meta.Object) *meta.Object {
	return meta.NewObject(map[string]any{"apiVersion": obj.APIVersion(), "kind": obj.Kind()})
}

// Unchanged reports whether obj differs from live in nothing but its
// resourceVersion and the times in managedFields: such a write is not stored.
func Unchanged(live, obj *meta.Object) bool {
	if live == nil {
		return false
	}
	a, b := live.Tree(), obj.Tree()
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if k == "metadata" {
			continue
		}
		if w, ok := b[k]; !ok || !meta.Equal(v, w) {
			return false
		}
	}
	return sameMetadata(live.Map("metadata"), obj.Map("metadata"))
}

func sameMetadata(a, b map[string]any) bool {
	for k, v := range a {
		switch k {
		case "resourceVersion":
		case "managedFields":
			x, _ := v.([]any)
			y, _ := b[k].([]any)
			if !sameEntries(x, y) {
				return false
			}
		default:
			if w, ok := b[k]; !ok || !meta.Equal(v, w) {
				return false
			}
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok && k != "resourceVersion" {
			return false
		}
	}
	return true
}

// sameEntries compares two managedFields lists without times, and so without
// the order that the times give.
func sameEntries(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	used := make([]bool, len(b))
	for i, x := range a {
		found := false
		for n := range b {
			j := (i + n) % len(b)
			if !used[j] && sameEntry(x, b[j]) {
				used[j], found = true, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

func sameEntry(x, y any) bool {
	a, _ := x.(map[string]any)
	b, _ := y.(map[string]any)
	for _, k := range []string{"manager", "operation", "apiVersion", "subresource", "fieldsType"} {
		if !meta.Equal(a[k], b[k]) {
			return false
		}
	}
	return meta.Equal(a["fieldsV1"], b["fieldsV1"])
}
