package apply

import (
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply/internal/ownership"
)

// Update records in obj's metadata.managedFields that the manager owns the fields that obj
// has and live does not have, or has with another value. It is for every write but Apply.
// live is nil if the write creates the object. Both objects may be in another version than
// the writer's, but in the same. Only obj is changed.
//
// A valid managedFields list in obj replaces the owners of live; a missing, empty or
// malformed list keeps them. A list with a single empty entry resets the owners: the writer
// then owns the fields that the same update changes (see Config.UntrackedReset). An object
// without owners gets none before its next Apply. A change is not recorded if the objects
// do not match the schema. A write through a subresource cannot set managedFields.
//
// The error is a *meta.Status: BadRequest (400) if the version is unknown, Invalid (422) if
// an entry in obj has an invalid name.
func (m *FieldManager) Update(live, obj *meta.Object, o Options) error {
	o = o.withVersion(obj)
	v, err := m.version(o.APIVersion)
	if err != nil {
		return err
	}
	es, reset, err := m.ownersForUpdate(live, obj, o)
	if err != nil {
		return err
	}
	if len(es) == 0 && live != nil && (!reset || m.config.UntrackedReset) {
		obj.Delete("metadata", "managedFields")
		return nil
	}
	old := v.Zero(o.APIVersion, obj.Tree()["kind"])
	if live != nil {
		old = withoutManagedFields(live)
	}
	recorded, err := m.record(es, old, withoutManagedFields(obj), o)
	if mismatch := (*ownership.MismatchError)(nil); errors.As(err, &mismatch) {
		recorded = es
	} else if err != nil {
		return err
	}
	return m.setManagedFields(obj, recorded)
}

// record returns the owners after the writer has changed old to new.
func (m *FieldManager) record(es entries, old, new map[string]any, o Options) (entries, error) {
	c := &changes{m: m, old: old, new: new, by: o}
	es, _, err := m.disown(es, nil, c, true)
	if err != nil {
		return nil, err
	}
	d, err := c.in(o.APIVersion)
	if err != nil {
		return nil, err
	}
	set := d.changed
	if !set.Empty() {
		set = set.Difference(m.system)
	}
	if set.Empty() {
		return es, nil
	}
	self := o.entry(opUpdate)
	if e := es.find(self); e != nil {
		self = e
		set = set.Union(e.set)
	} else {
		es = append(es, self)
	}
	if self.set == nil || !set.Equals(self.set) {
		self.setFields(set)
	}
	self.written(o)
	return capUpdaters(es), nil
}

// ownersForUpdate returns the owners before a write. reset reports whether the write resets
// them. Malformed managedFields of live count as none.
func (m *FieldManager) ownersForUpdate(live, obj *meta.Object, o Options) (es entries, reset bool, err error) {
	if live == nil {
		return nil, false, nil // the writer owns the whole new object
	}
	if o.Subresource == "" {
		list, _ := obj.Get("metadata", "managedFields")
		given, _ := list.([]any)
		if isReset(given) {
			return nil, true, nil
		}
		es, err := readEntries(given, m.readSet)
		if err == nil && len(es) > 0 {
			return es, false, checkNames(obj, es)
		}
	}
	es, err = readEntries(live.List("metadata", "managedFields"), m.readSet)
	if err != nil {
		return nil, false, nil
	}
	return es, false, nil
}

// isReset reports whether list is the single empty entry that resets the owners.
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

// checkNames rejects entries with names that no request can have.
func checkNames(obj *meta.Object, es entries) error {
	var causes []meta.StatusCause
	for i, e := range es {
		at := fmt.Sprintf("metadata.managedFields[%d].", i)
		causes = append(causes, ValidateManager(e.manager, at+"manager", false)...)
		if len(e.subresource) > 2*maxManager {
			causes = append(causes, meta.StatusCause{Reason: meta.CauseTooLong, Field: at + "subresource", Message: fmt.Sprintf("Too long: may not be more than %d bytes", 2*maxManager)})
		}
	}
	if causes == nil {
		return nil
	}
	return meta.Invalid(meta.GroupKind{Group: meta.ParseAPIVersion(obj.APIVersion()).Group, Kind: obj.Kind()}, obj.Name(), causes)
}

// setManagedFields writes es into obj.
func (m *FieldManager) setManagedFields(obj *meta.Object, es entries) error {
	list, err := m.writeEntries(es)
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
