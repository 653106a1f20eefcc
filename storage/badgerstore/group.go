package badgerstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// Badger writes the entries of a batch to its log in any order, so after a crash only some entries of a
// commit may be there. Before the store writes the batch, it therefore writes each commit of several
// writes as one entry, called a group, and waits for the disk. If the process crashes, load writes the
// missing entries from the group. Only the last batch can be incomplete, because the store continues
// after a batch only if all of it is on the disk.

// groupPrefix is the prefix of the keys of groups. The number of the commit in its batch follows. The
// version is the revision of the commit. The groups of the next batch replace them.
const groupPrefix = "g"

const (
	groupBytes = MaxKeyBytes // maximum total length of the keys of a commit
	groupEntry = 32          // bytes that an entry of a group counts in addition to key and value; an upper bound
)

// groupKey returns the key of the group of commit i of a batch.
func groupKey(i int) []byte {
	return binary.BigEndian.AppendUint32([]byte(groupPrefix), uint32(i))
}

// runs returns the ranges of events that belong to a commit of several writes, as indexes of the first
// event and after the last event.
func runs(events []storage.Event) (groups [][2]int) {
	for from := 0; from < len(events); {
		to := from + 1
		for to < len(events) && events[to].Revision == events[from].Revision {
			to++
		}
		if to-from > 1 {
			groups = append(groups, [2]int{from, to})
		}
		from = to
	}
	return groups
}

// putGroups adds the groups of commits to a batch. groups is the result of runs. heads are the entries of
// the events, nil for deletions.
func putGroups(batch *badger.WriteBatch, groups [][2]int, events []storage.Event, heads []*badger.Entry) error {
	for i, g := range groups {
		entries := make([]entry, 0, g[1]-g[0])
		for j := g[0]; j < g[1]; j++ {
			e := entry{key: recordKey(events[j].Key), version: uint64(events[j].Revision), deleted: true}
			if head := heads[j]; head != nil {
				e.deleted, e.encoding, e.value = false, head.UserMeta, head.Value
			}
			entries = append(entries, e)
		}
		if err := batch.SetEntryAt(badger.NewEntry(groupKey(i), encodeGroup(entries)), entries[0].version); err != nil {
			return err
		}
	}
	return nil
}

// encodeGroup returns the value of a group: for each entry, flags, encoding, and key and value with their
// lengths; then a checksum.
func encodeGroup(entries []entry) []byte {
	var data []byte
	for _, e := range entries {
		flags := byte(0)
		if e.deleted {
			flags = flagDeleted
		}
		data = append(data, flags, e.encoding)
		for _, part := range [][]byte{e.key, e.value} {
			data = append(binary.AppendUvarint(data, uint64(len(part))), part...)
		}
	}
	return encodeSum(data)
}

// encodeSum appends the checksum that decodeGroup verifies.
func encodeSum(data []byte) []byte {
	return binary.BigEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

// decodeGroup decodes a group of the commit with the given revision. It returns false if data is damaged.
// The entries do not share memory with data.
func decodeGroup(revision storage.Revision, data []byte) (entries []entry, ok bool) {
	end := len(data) - sumBytes
	if end < 0 || crc32.Checksum(data[:end], castagnoli) != binary.BigEndian.Uint32(data[end:]) {
		return nil, false
	}
	data = slices.Clone(data[:end])
	for len(data) > 0 {
		if len(data) < 2 {
			return nil, false
		}
		e := entry{version: uint64(revision), deleted: data[0]&flagDeleted != 0, encoding: data[1]}
		data = data[2:]
		for _, part := range []*[]byte{&e.key, &e.value} {
			n, size := binary.Uvarint(data)
			if size <= 0 || n > uint64(len(data)-size) {
				return nil, false
			}
			*part, data = data[size:size+int(n):size+int(n)], data[size+int(n):]
		}
		if !strings.HasPrefix(string(e.key), recordPrefix) {
			return nil, false
		}
		entries = append(entries, e)
	}
	return entries, true
}

// finishGroups writes the missing entries of the commits of several writes that the last process did not
// finish. Commits up to the revision in the mark are skipped: they are complete, and some of their
// entries may have been discarded by a compaction. No entry after that revision is ever discarded.
func (s *Store) finishGroups(txn *badger.Txn) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(groupPrefix)})
	defer it.Close()
	var missing []entry
	for it.Rewind(); it.Valid(); it.Next() {
		revision := storage.Revision(it.Item().Version())
		if revision <= s.state.revision {
			continue
		}
		data, err := it.Item().ValueCopy(nil)
		if err != nil {
			return err
		}
		entries, ok := decodeGroup(revision, data)
		if !ok {
			return fmt.Errorf("%w: the group of revision %d cannot be read; %s", errFilesDamaged, revision, remedy)
		}
		for _, e := range entries {
			if !written(txn, e) {
				missing = append(missing, e)
			}
		}
	}
	return s.flushAll(len(missing), pieceBytes, func(batch *badger.WriteBatch, i int) error {
		e := missing[i]
		if e.deleted {
			return batch.DeleteAt(e.key, e.version)
		}
		return batch.SetEntryAt(badger.NewEntry(e.key, e.value).WithMeta(e.encoding), e.version)
	})
}

// written reports whether the database has an entry with the key and version of e.
func written(txn *badger.Txn, e entry) bool {
	it := txn.NewKeyIterator(e.key, badger.IteratorOptions{AllVersions: true})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if it.Item().Version() == e.version {
			return true
		}
	}
	return false
}
