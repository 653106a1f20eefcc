package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"orch.io/controlplane/storage"
)

// plain fills a store that chooses its revisions itself. Each record gets a revision that is larger than its revision in
// the source. A client that knows a revision of a record in the source therefore never finds another version of
// the record with that revision.
type plain struct {
	to      storage.Backend
	reached storage.Revision          // newest revision of the store
	mark    storage.Revision          // revision of storage.IncompleteKey
	written map[string]written        // by key
	pending map[string]storage.Record // records of the next commit
	size    int                       // size of their keys and values
	newest  storage.Revision          // newest revision of pending in the source
}

// written describes the state of a key in the store.
type written struct {
	revision storage.Revision // revision in the source
	there    bool             // the key exists in the store
}

// scratchPrefix is the prefix of the keys of commits that only raise the revision.
const scratchPrefix = storage.IncompleteKey + "/"

// raisers is the number of such commits that run concurrently.
const raisers = 64

// raiseStep is the number of such commits between two calls of Options.Progress.
const raiseStep = 1_000

// begin creates the mark (storage.IncompleteKey) in an empty store, or deletes the records of an interrupted copy. It then
// tests whether the store can be compacted, before there is any history to lose.
func (p *plain) begin(ctx context.Context) error {
	if err := p.claim(ctx); err != nil {
		return err
	}
	return p.compact(ctx, 1)
}

// compact compacts the store.
func (p *plain) compact(ctx context.Context, before storage.Revision) error {
	if err := p.to.Compact(ctx, before); err != nil {
		return fmt.Errorf("compact the destination, which is needed so that clients do not miss changes: %w", err)
	}
	return nil
}

// claim creates the mark in an empty store, or clears a store that has it. It fails with storage.ErrNotEmpty if the store has
// records but no mark.
func (p *plain) claim(ctx context.Context) error {
	mark, err := p.to.Get(ctx, storage.IncompleteKey, 0)
	if err == nil {
		p.mark = mark.Revision
		return p.clear(ctx)
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	_, records, err := p.to.Scan(ctx, "", "", 0)
	if err != nil {
		return err
	}
	for rec, err := range records {
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: found the key %.80q", storage.ErrNotEmpty, rec.Key)
	}
	p.reached, err = p.to.Commit(ctx, storage.Write{Key: storage.IncompleteKey, Value: []byte("filling")})
	p.mark = p.reached
	return err
}

// clear deletes all records except the mark.
func (p *plain) clear(ctx context.Context) error {
	at, records, err := p.to.Scan(ctx, "", "", 0)
	if err != nil {
		return err
	}
	p.reached = at
	for rec, err := range records {
		if err != nil {
			return err
		}
		if rec.Key == storage.IncompleteKey {
			continue
		}
		p.written[rec.Key] = written{there: true}
		if err := p.add(ctx, storage.Record{Key: rec.Key}); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

// raise makes commits until the newest revision of the store is at least the given revision.
func (p *plain) raise(ctx context.Context, revision storage.Revision) error {
	if p.reached >= revision {
		return nil
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for i := range min(raisers, int64(revision-p.reached)) {
		w := storage.Write{Key: fmt.Sprint(scratchPrefix, i), Value: []byte{}, Expect: storage.AnyRevision}
		all.Go(func() {
			for {
				at, err := p.to.Commit(ctx, w)
				mu.Lock()
				p.reached = max(p.reached, at)
				failed = errors.Join(failed, err)
				done := failed != nil || p.reached >= revision
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	all.Wait()
	return failed
}

// fill writes the newest version of each record to the store.
func (p *plain) fill(ctx context.Context, records iter.Seq2[storage.Record, error]) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		if isScratch(rec.Key) {
			continue // left by an earlier copy, or forged; the mark must stay until the store is complete
		}
		if have, ok := p.written[rec.Key]; ok && have.revision >= rec.Revision {
			continue // a repetition, or an older version
		}
		if err := p.add(ctx, rec); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

// add adds a record to the next commit. It first writes the pending records if the commit would become too large.
func (p *plain) add(ctx context.Context, rec storage.Record) error {
	size := len(rec.Key) + len(rec.Value)
	if len(p.pending) == storage.CommitLength || p.size+size > storage.CommitBytes {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	p.pending[rec.Key] = rec
	p.size += size
	p.newest = max(p.newest, rec.Revision)
	have := p.written[rec.Key]
	p.written[rec.Key] = written{rec.Revision, have.there}
	return nil
}

// flush raises the revision to the newest revision of the pending records, and then commits them.
func (p *plain) flush(ctx context.Context) error {
	var writes []storage.Write
	for key, rec := range p.pending {
		have := p.written[key]
		if rec.Value != nil || have.there {
			writes = append(writes, storage.Write{Key: key, Value: rec.Value, Expect: storage.AnyRevision})
		}
		p.written[key] = written{have.revision, rec.Value != nil}
	}
	err := p.raise(ctx, p.newest)
	if err == nil && len(writes) > 0 {
		p.reached, err = p.to.Commit(ctx, writes...)
	}
	clear(p.pending)
	p.size = 0
	return err
}

// finish compacts the store, so that no watch begins before the end of the copy, and deletes the mark and the scratch keys. It
// fails if the mark has changed, because then another copy into the store has begun.
func (p *plain) finish(ctx context.Context) (storage.Revision, error) {
	if err := p.compact(ctx, p.reached); err != nil {
		return 0, err
	}
	_, records, err := p.to.Scan(ctx, scratchPrefix, "", 0)
	if err != nil {
		return 0, err
	}
	writes := []storage.Write{{Key: storage.IncompleteKey, Expect: p.mark}}
	for rec, err := range records {
		if err != nil {
			return 0, err
		}
		writes = append(writes, storage.Write{Key: rec.Key, Expect: storage.AnyRevision})
	}
	return p.to.Commit(ctx, writes...)
}
