package objectcache

import (
	"context"
	"errors"
)

// Limits of a call of make. They bound the memory that a call of a converter needs.
const (
	batchEntries = 500
	batchBytes   = 3 << 20 // of the objects; a single larger object is allowed
)

// Encode returns an encoding of each entry, like Entry.Encoded, but makes many at a time. make is called with entries
// that lack the encoding, and returns an encoding for each. It may be called several times.
//
// Concurrent callers share the result of make, and its error. A caller does not share an error if it requested only
// some of the entries of that batch, or if the context of the caller of make has ended. It then makes the encodings
// that it needs itself. No lock is held while make runs. Encodings of finished batches are kept if a later batch
// fails.
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
			for other, wanted := range others {
				if err := other.wait(ctx, wanted); err != nil {
					return nil, err
				}
			}
		}
		missing = rest
	}
}

// entryEncoding is an encoding of an entry. The entry may have dropped it.
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

// batch is a set of encodings that one call of make makes.
type batch struct {
	encodings []entryEncoding
	done      chan struct{} // closed at the end, after err and canceled are set
	err       error
	canceled  bool // the context of the caller of make ended, so err may not be caused by the entries
}

var errPanicked = errors.New("objectcache: encoding panicked")

func newBatch() *batch { return &batch{done: make(chan struct{}), err: errPanicked} }

// claimAll claims as many encodings for the batch as fit, skipping those that other batches make. others is the
// number of encodings that each other batch makes. missing are the encodings that are not made yet and that this
// batch does not make.
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

// claim makes b the batch that makes the encoding, and returns nil. If another batch makes it, claim returns that
// batch. If the encoding is already made, claim returns b.
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

// wait waits for the batch of another caller. It returns the error of the batch only if this caller wanted all of its
// encodings; wanted is the number of encodings of the batch that it wanted.
func (b *batch) wait(ctx context.Context, wanted int) error {
	select {
	case <-b.done:
		if b.canceled || wanted < len(b.encodings) {
			return nil // the caller retries
		}
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
