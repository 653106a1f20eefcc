package badgerstore

import (
	"math"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// pieces tracks the large values, so that their pieces are deleted when the values cannot be read any more. A
// replaced value can be read until the history begins at or after the revision that replaced it.
type pieces struct {
	live     map[string]large // current large values by key
	replaced []large          // replaced large values, in the order of large.by
}

// large is a value in pieces.
type large struct {
	revision storage.Revision
	by       storage.Revision // revision that replaced it; 0 if it is the current value
	n        int              // number of pieces
}

// replace updates the large values for an event.
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

// abandon schedules the deletion of the pieces of commits that failed: their pieces may be on the disk.
func (p *pieces) abandon(events []storage.Event, piece int) {
	last := events[len(events)-1].Revision
	for _, e := range events {
		if len(e.Value) > piece {
			p.replaced = append(p.replaced, large{revision: e.Revision, by: last, n: (len(e.Value) + piece - 1) / piece})
		}
	}
}

// dropPieces deletes the pieces of values that cannot be read any more if the history begins at floor. If the
// process ends before it is done, loadPieces deletes the rest.
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

// deletePieces deletes pieces by their keys. The keys are never used again, since they contain a revision.
func (s *Store) deletePieces(keys [][]byte) error {
	return s.flushAll(len(keys), len(piecePrefix)+12, func(batch *badger.WriteBatch, i int) error {
		revision, _, _ := pieceOf(keys[i])
		return batch.DeleteAt(keys[i], uint64(revision)+1)
	})
}

// newestPiece returns the newest revision that has pieces, or 0.
func newestPiece(txn *badger.Txn) storage.Revision {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(piecePrefix), Reverse: true})
	defer it.Close()
	if it.Seek(pieceKey(math.MaxInt64, math.MaxUint32)); !it.Valid() {
		return 0
	}
	revision, _, _ := pieceOf(it.Item().Key())
	return revision
}

// loadPieces deletes pieces that belong to no value: of unfinished writes, and of values before the retained
// history.
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
