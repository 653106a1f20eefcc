package objectcache

import (
	"context"
	"errors"
)

// Bounds of one call of make, which bound the memory that a call of a converter needs.
const (
	batchEntries = 500
	batchBytes   = 3 << 20 // of the objects, unless there is only one
)

// Encode returns an encoding of each entry, as Entry.Encoded does, but makes many at a time:
// make is called with entries that lack the encoding, and returns one for each. The result
// of make serves all concurrent callers, and so does its error, except for a caller that did
// not ask for all entries of that batch, or if the context of the caller of make has ended:
// these callers make the encodings that they need themselves. No lock is held while make
// runs. Encodings of finished batches are kept if a later batch fails.
func Encode(ctx context.Context, entries []*Entry, key EncodingKey, make func([]*Entry) ([][]byte, error)) ([][]byte, error) {
	all := encodingsOf(entries, key)
	missing := all
	for {
		own := newBatch()
		others, rest := own.claimAll(missing)
		switch {
		case len(own.encodings) > 0: // before waiting for other callers
			if err := own.run(ctx, make); err != nil {
				return nil, err
			}
		case len(others) == 0:
			return bytesOf(all), nil
		default:
			for other, asked := range others {
				if err := other.wait(ctx, asked); err != nil {
					return nil, err
				}
			}
		}
		missing = rest
	}
}

// entryEncoding is an encoding of an entry, which may have dropped it.
type entryEncoding struct {
	*encoding
	entry *Entry
}

func encodingsOf(entries []*Entry, key EncodingKey) []entryEncoding {
	list := make([]entryEncoding, len(entries))
	for i, e := range entries {
		list[i] = entryEncoding{e.findEncoding(encodingKey{EncodingKey: key}), e}
	}
	return list
}

func bytesOf(encodings []entryEncoding) [][]byte {
	list := make([][]byte, len(encodings))
	for i, f := range encodings {
		list[i] = *f.bytes.Load()
	}
	return list
}

// batch is the encodings that one call of make makes.
type batch struct {
	encodings []entryEncoding
	done      chan struct{} // closed at the end; err and canceled are written before
	err       error
	canceled  bool // the caller's context ended, so err may say nothing about the entries
}

var errPanicked = errors.New("objectcache: encoding panicked")

func newBatch() *batch { return &batch{done: make(chan struct{}), err: errPanicked} }

// claimAll claims for the batch as many encodings as fit, of those that no other batch makes.
// It returns the number of the encodings that other batches make, by batch, and all that
// this batch does not make and that are not made yet.
func (b *batch) claimAll(encodings []entryEncoding) (others map[*batch]int, missing []entryEncoding) {
	others = map[*batch]int{}
	size := 0
	for i, f := range encodings {
		if len(b.encodings) > 0 && (len(b.encodings) == batchEntries || size+f.entry.size() > batchBytes) {
			return others, append(missing, encodings[i:]...)
		}
		switch by := f.claim(b); {
		case by == nil:
			b.encodings = append(b.encodings, f)
			size += f.entry.size()
		case by != b:
			others[by]++
			missing = append(missing, f)
		}
	}
	return others, missing
}

// claim makes b the batch that makes the encoding and returns nil, unless there is one
// already, which it returns. It returns b if the encoding is made already.
func (f *encoding) claim(b *batch) *batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes.Load() != nil {
		return b
	}
	by := f.by
	if by == nil {
		f.by = b
	}
	return by
}

func (f *encoding) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by = nil
}

// run makes the encodings of the batch.
func (b *batch) run(ctx context.Context, make func([]*Entry) ([][]byte, error)) error {
	defer func() {
		b.canceled = ctx.Err() != nil
		for _, f := range b.encodings {
			f.release()
		}
		close(b.done)
	}()
	var entries []*Entry
	for _, f := range b.encodings {
		entries = append(entries, f.entry)
	}
	made, err := make(entries)
	if b.err = err; err != nil {
		return err
	}
	for i, f := range b.encodings {
		f.entry.fill(f.encoding, made[i])
	}
	return nil
}

// wait waits for another caller's batch. It returns the error of the batch if that concerns
// this caller, who asked for so many of its encodings.
func (b *batch) wait(ctx context.Context, asked int) error {
	select {
	case <-b.done:
		if b.canceled || asked < len(b.encodings) {
			return nil // the caller tries again
		}
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
