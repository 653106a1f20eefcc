package badgerstore

import (
	"slices"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// pieces knows which large values there are, so that their pieces go with them.
// A value that was replaced is read until its replacement is history.
type pieces struct {
	live     map[string]large
	replaced []large // in the order in which they were replaced
}

// large is a value in pieces.
type large struct {
	revision storage.Revision
	by       storage.Revision // the commit that replaced it
	n        int
}

// replace takes in a commit.
func (p *pieces) replace(e storage.Event, piece int) {
	if old, ok := p.live[e.Key]; ok {
		old.by = e.Revision
		p.replaced = append(p.replaced, old)
		delete(p.live, e.Key)
	}
	if len(e.Value) > piece {
		p.live[e.Key] = large{revision: e.Revision, n: (len(e.Value) + piece - 1) / piece}
	}
}

// before takes out the values that nobody can read any more when the history
// begins at a revision.
func (p *pieces) before(floor storage.Revision) []large {
	n := 0
	for n < len(p.replaced) && p.replaced[n].by <= floor {
		n++
	}
	gone := slices.Clone(p.replaced[:n])
	p.replaced = p.replaced[n:]
	return gone
}

// dropPieces deletes pieces. Those of a crash in between are found by load.
func (s *Store) dropPieces(values []large) error {
	var keys [][]byte
	for _, v := range values {
		for i := range v.n {
			keys = append(keys, pieceKey(v.revision, i))
		}
	}
	return s.deletePieces(keys)
}

// deletePieces deletes pieces by their keys, which are never used again.
func (s *Store) deletePieces(keys [][]byte) error {
	_, written, err := s.ready(int64(len(keys)) * 128)
	if err != nil {
		return err
	}
	defer written()
	return s.flush(len(keys), func(batch *badger.WriteBatch, i int) error {
		revision, _, _ := pieceOf(keys[i])
		return batch.DeleteAt(keys[i], uint64(revision)+1)
	})
}

// loadPieces deletes the pieces of values that are not there: of writes that
// were not finished, and of those that are history.
func (s *Store) loadPieces() error {
	known := make(map[storage.Revision]bool)
	p := &s.committer.pieces
	for _, v := range p.live {
		known[v.revision] = true
	}
	for _, v := range p.replaced {
		known[v.revision] = true
	}
	txn := s.db.NewTransactionAt(1<<63, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(piecePrefix)})
	defer it.Close()
	var keys [][]byte
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().KeyCopy(nil)
		if revision, _, ok := pieceOf(key); ok && !known[revision] {
			keys = append(keys, key)
		}
	}
	return s.deletePieces(keys)
}
