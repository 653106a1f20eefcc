package badgerstore

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// The entries of the database are sorted by key, but a watch of old revisions needs the keys in revision
// order. The revision index provides them. It consists of blocks: a block is an entry of the database with
// the keys of some hundred commits, and it is written in the batch of a later commit. Commits that are in
// no block yet are in memory, and load finds them again after a restart.

// indexPrefix is the prefix of the keys of blocks. The newest revision of the block follows.
const indexPrefix = "i"

// Versions of blocks. They are smaller than every revision up to which the database discards entries, so a
// deleted block leaves no entry.
const (
	blockVersion   = 1
	blockTombstone = 2
)

// Limits of a block, and the fraction of a batch by which blocks may exceed it.
const (
	blockCommits  = 256
	blockBytes    = 16 << 10
	blocksOfBatch = 8
)

// blocksAtOnce returns the maximum number of blocks that are written with one batch.
func (s *Store) blocksAtOnce() int { return max(1, s.batch/blocksOfBatch/blockBytes) }

// commit is the effect of a commit on one key, without the value.
type commit struct {
	key      string
	revision storage.Revision
	deleted  bool
	created  bool // the key did not exist before
}

func commitOf(e storage.Event) commit {
	return commit{e.Key, e.Revision, e.Deleted(), e.Prev.Revision == 0}
}

// block is a run of consecutive commits: all commits with a revision larger than after and up to last. A commit
// of several writes has one element for each write, and is never split between blocks.
type block struct {
	after, last storage.Revision
	commits     []commit
}

// revisionIndex holds the commits that are in no block yet. The committer is the only writer.
type revisionIndex struct {
	sync.RWMutex
	blocked storage.Revision // newest revision in a block
	tail    []commit         // all later commits, sorted by revision and key
}

// add adds commits that are about to be published.
func (x *revisionIndex) add(events []storage.Event) {
	x.Lock()
	defer x.Unlock()
	for _, e := range events {
		x.tail = append(x.tail, commitOf(e))
	}
}

// nextBlock returns a block of the oldest commits without the first skip elements of the tail. It returns false if
// they do not fill a block. after is the revision before the block.
func (x *revisionIndex) nextBlock(skip int, after storage.Revision) (block, bool) {
	x.RLock()
	defer x.RUnlock()
	size := 0
	for i, c := range x.tail[skip:] {
		size += len(c.key) + 8
		last := skip+i+1 == len(x.tail) || x.tail[skip+i+1].revision != c.revision // last element of its commit
		if last && (size >= blockBytes || i+1 >= blockCommits) {
			return block{after, c.revision, x.tail[skip : skip+i+1]}, true
		}
	}
	return block{}, false
}

// drop removes the first n elements of the tail, because they are in blocks on the disk.
func (x *revisionIndex) drop(n int) {
	x.Lock()
	defer x.Unlock()
	x.blocked = x.tail[n-1].revision
	x.tail = x.tail[n:]
}

// since returns the first commits after a revision: about limit elements, but only whole commits. It returns
// false if some of the commits are in blocks. The result must not be modified.
func (x *revisionIndex) since(after storage.Revision, limit int) ([]commit, bool) {
	x.RLock()
	defer x.RUnlock()
	if after < x.blocked {
		return nil, false
	}
	from := sort.Search(len(x.tail), func(i int) bool { return x.tail[i].revision > after })
	to := min(from+limit, len(x.tail))
	for to > from && to < len(x.tail) && x.tail[to].revision == x.tail[to-1].revision {
		to++
	}
	return x.tail[from:to], true
}

// putBlocks adds full blocks to a batch. The caller calls indexed after the batch is on the disk.
func (s *Store) putBlocks(batch *badger.WriteBatch) (indexed func(), err error) {
	n, after := 0, s.index.blocked
	for range s.blocksAtOnce() {
		b, ok := s.index.nextBlock(n, after)
		if !ok {
			break
		}
		if err := batch.SetEntryAt(badger.NewEntry(blockKey(b.last), b.encode()), blockVersion); err != nil {
			return nil, err
		}
		n, after = n+len(b.commits), b.last
	}
	return func() {
		if n > 0 {
			s.index.drop(n)
		}
	}, nil
}

// dropBlocks deletes blocks before the given revision, as many as fit into a batch. A later compaction deletes the
// rest.
func (s *Store) dropBlocks(batch *badger.WriteBatch, before storage.Revision) error {
	txn := s.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(indexPrefix)})
	defer it.Close()
	left := s.batch / batchEntry
	for it.Rewind(); it.Valid() && left > 0; it.Next() {
		left--
		key := it.Item().KeyCopy(nil)
		if blockEnd(key) > before {
			return nil
		}
		if err := batch.DeleteAt(key, blockTombstone); err != nil {
			return err
		}
	}
	return nil
}

// indexedUpTo returns the newest revision in a block, or 0.
func indexedUpTo(txn *badger.Txn) storage.Revision {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(indexPrefix), Reverse: true})
	defer it.Close()
	if it.Seek(blockKey(math.MaxInt64)); it.Valid() {
		return blockEnd(it.Item().Key())
	}
	return 0
}

// readBlock returns the block with the first commit after a revision. It returns false if there is none.
func (s *Store) readBlock(after storage.Revision) (b block, ok bool, err error) {
	txn := s.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(indexPrefix)})
	defer it.Close()
	if it.Seek(blockKey(after + 1)); !it.Valid() {
		return block{}, false, nil
	}
	last := blockEnd(it.Item().Key())
	err = it.Item().Value(func(data []byte) error {
		b, ok = decodeBlock(last, data)
		return nil
	})
	return b, ok && b.after <= after, err
}

// commits returns the next commits after a revision that wrote a key with the prefix, in revision order. The
// result is complete up to the returned revision.
func (s *Store) commits(prefix string, after storage.Revision) ([]commit, storage.Revision, error) {
	if !s.enter() {
		return nil, 0, storage.ErrClosed
	}
	defer s.leave()
	if after < s.oldestReadable() {
		return nil, 0, s.compactedError()
	}
	newest := s.published()
	upTo := newest
	list, ok := s.index.since(after, blockCommits)
	if ok && len(list) >= blockCommits {
		upTo = min(newest, list[len(list)-1].revision)
	}
	if !ok {
		b, found, err := s.readBlock(after)
		if err != nil {
			return nil, 0, err
		}
		if !found { // the block is damaged, or was compacted concurrently
			return s.search(prefix, after)
		}
		list, upTo = b.commits, b.last
	}
	list = slices.Clone(list)
	return slices.DeleteFunc(list, func(c commit) bool {
		return c.revision <= after || c.revision > upTo || !strings.HasPrefix(c.key, prefix)
	}), upTo, nil
}

// searchWindow is the number of revisions that one call of search covers.
const searchWindow = 64 << 10

// search is commits without the index: it iterates over all records with the prefix. The caller has called
// enter.
func (s *Store) search(prefix string, after storage.Revision) ([]commit, storage.Revision, error) {
	last := min(s.published(), after+searchWindow)
	txn := s.db.NewTransactionAt(uint64(last), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{AllVersions: true, SinceTs: uint64(after), Prefix: recordKey(prefix)})
	defer it.Close()
	var found []commit
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		key, revision := string(item.Key()[len(recordPrefix):]), storage.Revision(item.Version())
		found = append(found, commit{key: key, revision: revision, deleted: item.IsDeletedOrExpired()})
	}
	if after < s.oldestReadable() {
		return nil, 0, s.compactedError()
	}
	sortCommits(found)
	return found, last, nil
}

// sortCommits sorts by revision and key.
func sortCommits(list []commit) {
	slices.SortFunc(list, func(a, b commit) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), strings.Compare(a.key, b.key))
	})
}

func blockKey(last storage.Revision) []byte {
	return binary.BigEndian.AppendUint64([]byte(indexPrefix), uint64(last))
}

// blockEnd returns the newest revision of the block with the given key, 0 if the key is invalid.
func blockEnd(key []byte) storage.Revision {
	if len(key) != len(indexPrefix)+8 {
		return 0
	}
	return storage.Revision(binary.BigEndian.Uint64(key[len(indexPrefix):]))
}

const (
	flagDeleted = 1
	flagCreated = 2
)

// encode returns the value of a block: its first revision; for each commit the difference to the previous
// revision, flags, and the key with its length; then a checksum. Numbers are varints.
func (b *block) encode() []byte {
	data := binary.AppendUvarint(nil, uint64(b.after))
	before := b.after
	for _, c := range b.commits {
		data = binary.AppendUvarint(data, uint64(c.revision-before))
		flags := byte(0)
		if c.deleted {
			flags |= flagDeleted
		}
		if c.created {
			flags |= flagCreated
		}
		data = append(data, flags)
		data = binary.AppendUvarint(data, uint64(len(c.key)))
		data = append(data, c.key...)
		before = c.revision
	}
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// decodeBlock decodes a block with last as its newest revision. It returns false if data is damaged.
func decodeBlock(last storage.Revision, data []byte) (block, bool) {
	end := len(data) - 4
	if end < 0 || crc32.ChecksumIEEE(data[:end]) != binary.BigEndian.Uint32(data[end:]) {
		return block{}, false
	}
	data = data[:end]
	number := func() storage.Revision {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > math.MaxInt64 {
			data = nil
			return -1
		}
		data = data[size:]
		return storage.Revision(n)
	}
	b := block{after: number(), last: last}
	for at := b.after; len(data) > 0; {
		step := number()
		if step < 0 || len(data) == 0 || step > last-at || step == 0 && len(b.commits) == 0 {
			return block{}, false
		}
		flags := data[0]
		data = data[1:]
		size := number()
		if size < 0 || int64(size) > int64(len(data)) {
			return block{}, false
		}
		at += step
		b.commits = append(b.commits, commit{string(data[:size]), at, flags&flagDeleted != 0, flags&flagCreated != 0})
		data = data[size:]
	}
	if b.after < 0 || len(b.commits) == 0 || b.commits[len(b.commits)-1].revision != last {
		return block{}, false
	}
	return b, true
}
