package badgerstore

import (
	"math"
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

// abandon takes in commits that were not made, whose pieces may be there.
func (p *pieces) abandon(events []storage.Event, piece int) {
	last := events[len(events)-1].Revision
	for _, e := range events {
		if len(e.Value) > piece {
			p.replaced = append(p.replaced, large{revision: e.Revision, by: last, n: (len(e.Value) + piece - 1) / piece})
		}
	}
}

// dropPieces deletes the pieces of values that nobody can read any more when the
// history begins at a revision. Those of a crash in between are found by load.
func (s *Store) dropPieces(floor storage.Revision) error {
	p := &s.committer.pieces
	n := 0
	var keys [][]byte
	for ; n < len(p.replaced) && p.replaced[n].by <= floor; n++ {
		for i := range p.replaced[n].n {
			keys = append(keys, pieceKey(p.replaced[n].revision, i))
		}
	}
	if err := s.deletePieces(keys); err != nil {
		return err
	}
	p.replaced = slices.Delete(p.replaced, 0, n)
	return nil
}

// deletePieces deletes pieces by their keys, which are never used again.
func (s *Store) deletePieces(keys [][]byte) error {
	return s.flushAll(len(keys), len(piecePrefix)+12, func(batch *badger.WriteBatch, i int) error {
		revision, _, _ := pieceOf(keys[i])
		return batch.DeleteAt(keys[i], uint64(revision)+1)
	})
}

// newestPiece returns the newest revision that pieces belong to, or 0.
func newestPiece(txn *badger.Txn) storage.Revision {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(piecePrefix), Reverse: true})
	defer it.Close()
	if it.Seek(pieceKey(math.MaxInt64, math.MaxUint32)); !it.Valid() {
		return 0
	}
	revision, _, _ := pieceOf(it.Item().Key())
	return revision
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
