package backup

import "orch.io/controlplane/storage"

// contents are the newest versions of the entries of a chain of files, by key. They are compared with the state in the
// trailer before a store publishes the records.
type contents map[string]content

type content struct {
	revision storage.Revision
	deleted  bool
	value    *digest // digest of the record; nil until its value is found
}

// add adds an entry. If the value of an entry is in an earlier file, add is called again with that value.
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
		return damaged("two different versions of %.80q have the revision %d", e.Key, e.Revision)
	}
	if have.value == nil {
		c[e.Key] = found
	}
	return nil
}

// check compares the contents with the state of a trailer. If values are missing because their file is not available,
// it compares only the number of keys.
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
		return damaged("the entries do not match the trailer: %d keys instead of %d, or other records", found.keys, want.keys)
	}
	return nil
}
