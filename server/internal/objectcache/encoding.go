package objectcache

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// EncodingKey identifies an encoding of an object by everything on which its bytes depend. The zero EncodingKey is
// valid.
type EncodingKey struct {
	Version string // served version
	Media   uint8  // media type
	View    uint8  // full object, metadata only, table row, ...

	// MaxAge is how long the bytes are kept; 0: as long as there is room.
	MaxAge time.Duration
}

type encodingKey struct {
	EncodingKey
	event EventType // of the event that the bytes frame; 0 for the object itself
}

// encoding is one kept encoding of an entry. The encodings of an entry are a list, which
// grows at its head by compare-and-swap and is dropped as a whole. An encoding that was
// dropped can still be filled and read by the goroutines that have it.
type encoding struct {
	key   encodingKey
	since time.Time // set if the key has a MaxAge
	mu    sync.Mutex
	by    *batch // the batch of Encode that makes the bytes; guarded by mu
	bytes atomic.Pointer[[]byte]
	next  *encoding
}

// Encoded returns an encoding of the object. make is called, under encoding.mu, when the key is first requested, and
// again only if it failed or the encoding was dropped to make room. The bytes are shared and must not be modified.
func (e *Entry) Encoded(key EncodingKey, make func() ([]byte, error)) ([]byte, error) {
	return e.encode(encodingKey{EncodingKey: key}, make)
}

// KeepEncoded keeps an encoding that is already made. The caller must not modify b afterwards.
func (e *Entry) KeepEncoded(key EncodingKey, b []byte) {
	e.fill(e.findEncoding(encodingKey{EncodingKey: key}), b)
}

// dropEncodings drops all kept encodings.
func (e *Entry) dropEncodings() { e.encoded.Store(nil) }

func (e *Entry) encode(key encodingKey, make func() ([]byte, error)) ([]byte, error) {
	f := e.findEncoding(key)
	if b := f.bytes.Load(); b != nil {
		return *b, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.bytes.Load(); b != nil {
		return *b, nil
	}
	b, err := make()
	if err != nil {
		return nil, err
	}
	e.fill(f, b)
	return b, nil
}

func (e *Entry) fill(f *encoding, b []byte) {
	f.bytes.Store(&b)
	if e.budget != nil {
		e.budget.spend(e, len(b))
	}
}

// findEncoding returns the encoding of a key, which it adds if needed. If the encoding has
// expired, findEncoding drops all encodings of the entry, because others may derive from it.
func (e *Entry) findEncoding(key encodingKey) *encoding {
	var now time.Time
	if key.MaxAge > 0 {
		now = time.Now()
	}
	var added *encoding
	for {
		head := e.encoded.Load()
		next := head
		for f := head; f != nil; f = f.next {
			if f.key != key {
				continue
			}
			if key.MaxAge == 0 || now.Sub(f.since) < key.MaxAge {
				return f
			}
			next = nil
			break
		}
		if added == nil {
			added = &encoding{key: key, since: now}
		}
		added.next = next
		if e.encoded.CompareAndSwap(head, added) {
			return added
		}
	}
}

// encodingBudget bounds the bytes of kept encodings. When they exceed max, the entries whose encodings were made
// first drop theirs. It does not keep entries alive.
type encodingBudget struct {
	max int64

	mu    sync.Mutex
	total int64
	queue []spent // from first on
	first int
}

type spent struct {
	entry weak.Pointer[Entry]
	bytes int64
}

// encodingOverhead is the approximate size of an encoding beside its bytes.
const encodingOverhead = 128

func newEncodingBudget(bytes int64) *encodingBudget {
	if bytes <= 0 {
		bytes = 32 << 20
	}
	return &encodingBudget{max: bytes}
}

func (b *encodingBudget) spend(e *Entry, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(bytes) + encodingOverhead
	b.total += n
	b.queue = append(b.queue, spent{weak.Make(e), n})
	for b.total > b.max && b.first < len(b.queue) {
		oldest := b.queue[b.first]
		b.first++
		b.total -= oldest.bytes
		if e := oldest.entry.Value(); e != nil {
			e.dropEncodings()
		}
	}
	if b.first > len(b.queue)/2 {
		b.queue = append(b.queue[:0], b.queue[b.first:]...)
		b.first = 0
	}
}
