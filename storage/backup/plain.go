package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"orch.io/controlplane/storage"
)

// plain fills a store that chooses its revisions by itself. No record gets a revision that
// is not larger than the one it had: whoever knows a record by a revision of the source
// never finds another one under it.
type plain struct {
	to      storage.Backend
	reached storage.Revision          // newest revision of the store
	mark    storage.Revision          // of storage.UnfinishedKey
	written map[string]written        // by key
	pending map[string]storage.Record // of the next commit
	size    int                       // of their keys and values
	newest  storage.Revision          // of pending, in the source
}

// written is what the store has of a key.
type written struct {
	revision storage.Revision // in the source
	there    bool             // not deleted
}

// scratchPrefix begins the keys of commits that only raise the revision.
const scratchPrefix = storage.UnfinishedKey + "/"

// raisers is how many such commits are made at a time.
const raisers = 64

// raiseStep is after how many such commits there is something to tell.
const raiseStep = 1_000

// begin marks an empty store as one that is being filled, or empties one whose filling was
// broken off. Whether the history can be forgotten is found out before it is long, and before
// that of anybody else is.
func (p *plain) begin(ctx context.Context) error {
	if err := p.claim(ctx); err != nil {
		return err
	}
	return p.forget(ctx, 1)
}

// forget forgets how the store was filled up to a revision.
func (p *plain) forget(ctx context.Context, before storage.Revision) error {
	if err := p.to.Compact(ctx, before); err != nil {
		return fmt.Errorf("the history of the destination cannot be compacted, without which clients would miss changes: %w", err)
	}
	return nil
}

func (p *plain) claim(ctx context.Context) error {
	mark, err := p.to.Get(ctx, storage.UnfinishedKey, 0)
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
		return fmt.Errorf("%w: it has the key %.80q", storage.ErrNotEmpty, rec.Key)
	}
	p.reached, err = p.to.Commit(ctx, storage.Write{Key: storage.UnfinishedKey, Value: []byte("filling")})
	p.mark = p.reached
	return err
}

// clear deletes everything but the mark.
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
		if rec.Key == storage.UnfinishedKey {
			continue
		}
		p.written[rec.Key] = written{there: true}
		if err := p.add(ctx, storage.Record{Key: rec.Key}); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

// raise makes commits until the newest revision is not less than the given one.
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

func (p *plain) fill(ctx context.Context, records iter.Seq2[storage.Record, error]) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		if isScratch(rec.Key) {
			continue // of an earlier filling, or made up: the mark stays until all is there
		}
		if have, ok := p.written[rec.Key]; ok && have.revision >= rec.Revision {
			continue // it comes once more, or was replaced
		}
		if err := p.add(ctx, rec); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

// add puts a record into the next commit. One that is large has a commit of its own.
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

// finish forgets how the store was filled, so that no watch begins within it or before, and
// takes the marks away, unless somebody has marked it anew: who does knows that it stays a part.
func (p *plain) finish(ctx context.Context) (storage.Revision, error) {
	if err := p.forget(ctx, p.reached); err != nil {
		return 0, err
	}
	_, records, err := p.to.Scan(ctx, scratchPrefix, "", 0)
	if err != nil {
		return 0, err
	}
	writes := []storage.Write{{Key: storage.UnfinishedKey, Expect: p.mark}}
	for rec, err := range records {
		if err != nil {
			return 0, err
		}
		writes = append(writes, storage.Write{Key: rec.Key, Expect: storage.AnyRevision})
	}
	return p.to.Commit(ctx, writes...)
}
