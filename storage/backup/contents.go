package backup

import "orch.io/controlplane/storage"

// contents are the newest versions in a file, by key. What its trailer says of the state is
// held against them before any store shows it.
type contents map[string]content

type content struct {
	revision storage.Revision
	deleted  bool
	value    *digest // of the record; nil while its value was not found
}

// add takes in an entry, also one whose value an earlier file has, and later that value.
func (c contents) add(e entry) error {
	have, ok := c[e.Key]
	if ok && e.Revision < have.revision {
		return nil
	}
	found := content{revision: e.Revision, deleted: e.Value == nil && !e.earlier}
	if e.Value != nil {
		found.value = &digest{}
		found.value.add(e.Record)
	}
	if !ok || e.Revision > have.revision {
		c[e.Key] = found
		return nil
	}
	if found.deleted != have.deleted || found.value != nil && have.value != nil && *found.value != *have.value {
		return unusable("it has two versions of %.80q with the revision %d", e.Key, e.Revision)
	}
	if have.value == nil {
		c[e.Key] = found
	}
	return nil
}

// check compares it with the state that a trailer tells. Where values are missing, because
// the file that has them is not at hand, only the keys are counted.
func (c contents) check(want digest) error {
	var found digest
	missing := false
	for _, have := range c {
		switch {
		case have.deleted:
		case have.value == nil:
			missing = true
			found.keys++
		default:
			found.keys++
			for i := range found.contents {
				found.contents[i] += have.value.contents[i]
				found.records[i] += have.value.records[i]
			}
		}
	}
	if missing {
		found.contents, found.records = want.contents, want.records
	}
	if found != want {
		return unusable("its entries do not make the state that its trailer tells: %d keys of %d", found.keys, want.keys)
	}
	return nil
}
