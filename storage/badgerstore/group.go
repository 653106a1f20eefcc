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

// The entries of a batch get into the log in any order, so that a crash may leave
// some of those that one commit makes. A commit of several writes is therefore on
// the disk as a whole, as one entry, before its batch is begun, and load makes what
// is missing of it. Only the batch that the last process did not finish can lack
// anything: the store goes on after a batch only if all of it is there.

// groupPrefix begins the keys of these entries, before the number of the commit in
// its batch. The version is the commit's revision. The next batch replaces them.
const groupPrefix = "g"

// groupBytes bounds the keys of one commit, as MaxKeyBytes does with one write.
// groupEntry is how much an entry takes beyond its key and value, and more.
const (
	groupBytes = MaxKeyBytes
	groupEntry = 32
)

func groupKey(i int) []byte {
	return binary.BigEndian.AppendUint32([]byte(groupPrefix), uint32(i))
}

// runs finds the commits of several writes among the events of a batch: for each,
// where it begins and ends.
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

// putGroups adds the commits of several writes to a batch. heads are the entries of
// the events, nil for those that delete.
func putGroups(batch *badger.WriteBatch, groups [][2]int, events []storage.Event, heads []*badger.Entry) error {
	for i, g := range groups {
		entries := make([]entry, 0, g[1]-g[0])
		for j := g[0]; j < g[1]; j++ {
			e := entry{key: recordKey(events[j].Key), version: uint64(events[j].Revision), deleted: true}
			if head := heads[j]; head != nil {
				e.deleted, e.form, e.value = false, head.UserMeta, head.Value
			}
			entries = append(entries, e)
		}
		if err := batch.SetEntryAt(badger.NewEntry(groupKey(i), encodeGroup(entries)), entries[0].version); err != nil {
			return err
		}
	}
	return nil
}

// encodeGroup writes for each entry flags, its form, key and value, each with its
// length, and a checksum at the end.
func encodeGroup(entries []entry) []byte {
	var data []byte
	for _, e := range entries {
		flags := byte(0)
		if e.deleted {
			flags = flagDeleted
		}
		data = append(data, flags, e.form)
		for _, part := range [][]byte{e.key, e.value} {
			data = append(binary.AppendUvarint(data, uint64(len(part))), part...)
		}
	}
	return encodeSum(data)
}

// encodeSum appends the checksum that decodeGroup expects.
func encodeSum(data []byte) []byte {
	return binary.BigEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

// decodeGroup returns the entries of a commit.
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
		e := entry{version: uint64(revision), deleted: data[0]&flagDeleted != 0, form: data[1]}
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

// finishGroups makes what is missing of the commits of several writes that the
// last process had begun. Those up to the revision in the mark were finished, and
// history may have been discarded of them; of those after it nothing was.
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
			return fmt.Errorf("%w: what was committed at revision %d cannot be read; %s", errTablesLost, revision, wayOut)
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
		return batch.SetEntryAt(badger.NewEntry(e.key, e.value).WithMeta(e.form), e.version)
	})
}

// written reports whether the database has an entry.
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
