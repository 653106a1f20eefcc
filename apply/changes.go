package apply

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
)

// change is the difference between two objects in the same version.
type change struct {
	removed, changed *fieldpath.Set // changed: modified or added
	removedSize      int            // computed once, because a set counts its fields
	changedSize      int
}

func newChange(removed, changed *fieldpath.Set) *change {
	return &change{removed, changed, removed.Size(), changed.Size()}
}

// changes compares the objects before and after a write in every version in which fields
// are owned.
type changes struct {
	m        *FieldManager
	old, new map[string]any
	by       Options
	strict   bool               // fail if a conversion fails
	done     map[string]*change // by version; nil value: the version is unknown
}

// in returns the difference in a version, nil if the version is unknown.
func (c *changes) in(apiVersion string) (*change, error) {
	if d, ok := c.done[apiVersion]; ok {
		return d, nil
	}
	if c.done == nil {
		c.done = map[string]*change{}
	}
	d, err := c.compare(apiVersion)
	c.done[apiVersion] = d
	return d, err
}

func (c *changes) compare(apiVersion string) (*change, error) {
	v := c.m.versions[apiVersion]
	if v == nil {
		return nil, nil
	}
	trees, err := c.converted(apiVersion)
	if err != nil && c.strict {
		return nil, err
	}
	if len(trees) == 0 { // the version cannot represent the objects: its owners stay unchanged
		return newChange(fieldpath.NewSet(), fieldpath.NewSet()), nil
	}
	removed, changed, err := v.Compare(trees[0], trees[1])
	if err != nil {
		return nil, err
	}
	return newChange(c.m.writable(removed, c.by), c.m.writable(changed, c.by)), nil
}

// converted returns both objects in a version. If only their metadata differs, nothing but
// the metadata is returned and nothing is converted.
func (c *changes) converted(apiVersion string) ([]map[string]any, error) {
	if c.old["apiVersion"] == apiVersion && c.new["apiVersion"] == apiVersion || !equalContent(c.old, c.new) {
		return c.m.convert(apiVersion, c.old, c.new)
	}
	var out []map[string]any
	for _, tree := range []map[string]any{c.old, c.new} {
		out = append(out, map[string]any{"apiVersion": apiVersion, "kind": tree["kind"], "metadata": tree["metadata"]})
	}
	return out, nil
}

// equalContent reports whether two objects of the same version differ at most in their metadata.
func equalContent(a, b map[string]any) bool {
	covers := func(a, b map[string]any) bool {
		for field, v := range a {
			if w, ok := b[field]; field != "metadata" && (!ok || !meta.Equal(v, w)) {
				return false
			}
		}
		return true
	}
	return covers(a, b) && covers(b, a)
}

// contested are the fields that a write would take from their owner.
type contested struct {
	owner  *entry
	fields *fieldpath.Set
}

// disown removes the changed fields from every entry but self, and drops entries of unknown
// versions and entries that become empty. Unless force is set, it changes nothing if fields
// are contested, and returns them.
func (m *FieldManager) disown(es entries, self *entry, c *changes, force bool) (entries, []contested, error) {
	type loss struct {
		e    *entry
		keep *fieldpath.Set
	}
	var losses []loss
	var conflicts []contested
	var known entries
	for _, e := range es {
		if e == self {
			known = append(known, e)
			continue
		}
		d, err := c.in(e.apiVersion)
		if err != nil {
			return nil, nil, err
		}
		if d == nil {
			continue
		}
		known = append(known, e)
		lost := intersection(e.set, d.changed, d.changedSize)
		if !lost.Empty() {
			conflicts = append(conflicts, contested{e, lost})
		}
		gone := intersection(e.set, d.removed, d.removedSize)
		if lost.Empty() && gone.Empty() {
			continue
		}
		losses = append(losses, loss{e, e.set.Difference(lost).Difference(gone)})
	}
	if !force && len(conflicts) > 0 {
		return nil, conflicts, nil
	}
	for _, l := range losses {
		l.e.setFields(l.keep)
	}
	return known.withoutEmpty(), nil, nil
}

// intersection returns the fields in both sets; manySize is the size of many. If few is
// small, its fields are looked up individually: an object may have a thousand owners, and a
// write may change half a million fields.
func intersection(few, many *fieldpath.Set, manySize int) *fieldpath.Set {
	const lookup = 16 // cost of a lookup, in steps of a walk over both sets
	if lookup*few.Size() >= manySize {
		return few.Intersection(many)
	}
	out := fieldpath.NewSet()
	few.Iterate(func(p fieldpath.Path) {
		if many.Has(p) {
			out.Insert(p.Copy())
		}
	})
	return out
}

// capUpdaters merges the oldest Update entries of a version while there are more
// than maxUpdaters.
func capUpdaters(es entries) entries {
	var updaters entries
	for _, e := range es {
		if e.operation == opUpdate {
			updaters = append(updaters, e)
		}
	}
	over := len(updaters) - maxUpdaters
	if over <= 0 {
		return es
	}
	slices.SortFunc(updaters, compareEntries)
	first := map[string]*entry{}
	gone := map[*entry]bool{}
	for _, e := range updaters {
		if over == 0 {
			break
		}
		oldest := first[e.apiVersion]
		if oldest == nil {
			first[e.apiVersion] = e
			continue
		}
		bucket := es.find(&entry{manager: ancientManager, operation: opUpdate, apiVersion: e.apiVersion})
		if bucket == nil {
			bucket = oldest
			bucket.manager, bucket.subresource = ancientManager, ""
		}
		if bucket == e {
			continue
		}
		bucket.setFields(bucket.set.Union(e.set))
		bucket.setTime(e.time)
		gone[e] = true
		over--
	}
	return slices.DeleteFunc(es, func(e *entry) bool { return gone[e] })
}
