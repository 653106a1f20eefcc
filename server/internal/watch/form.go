package watch

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// FormKey names a representation of an object: whatever distinguishes the bytes
// that callers may get. The zero FormKey is free for use too.
type FormKey struct {
	Version string // served version
	Media   uint8  // media type
	View    uint8  // full object, metadata only, table row, ...

	// MaxAge is how long the bytes are kept; 0: as long as there is room for them.
	MaxAge time.Duration
}

type formKey struct {
	FormKey
	event EventType // 0: the object itself; else framed as such an event
}

// form is one kept representation; the forms of an entry are a list, which grows at its
// head by compare-and-swap and is dropped as a whole. Who holds a form that was dropped
// meanwhile still gets its bytes.
type form struct {
	key   formKey
	since time.Time  // set if the key has a MaxAge
	mu    sync.Mutex // held while the bytes are made, by Form
	by    *making    // who makes them, by Forms; guarded by mu
	bytes atomic.Pointer[[]byte]
	next  *form
}

// Form returns another representation of the object: what make returned when
// it was first asked for this key. make runs once, unless it fails or the form
// was dropped meanwhile to make room for newer ones. The bytes are shared and
// must not be modified.
func (e *Entry) Form(key FormKey, make func() ([]byte, error)) ([]byte, error) {
	return e.form(formKey{FormKey: key}, make)
}

// dropForms forgets the kept representations.
func (e *Entry) dropForms() { e.forms.Store(nil) }

func (e *Entry) form(key formKey, make func() ([]byte, error)) ([]byte, error) {
	f := e.findForm(key)
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

func (e *Entry) fill(f *form, b []byte) {
	f.bytes.Store(&b)
	if e.budget != nil {
		e.budget.spend(e, len(b))
	}
}

// findForm returns the form of a key, which it adds if needed. If the form has expired, findForm drops all
// forms of the entry, because others may derive from it.
func (e *Entry) findForm(key formKey) *form {
	var now time.Time
	if key.MaxAge > 0 {
		now = time.Now()
	}
	var made *form
	for {
		head := e.forms.Load()
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
		if made == nil {
			made = &form{key: key, since: now}
		}
		made.next = next
		if e.forms.CompareAndSwap(head, made) {
			return made
		}
	}
}

// formBudget bounds the bytes of kept forms: the entries whose forms are the
// oldest lose theirs. It keeps no entry alive.
type formBudget struct {
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

// formOverhead is what a form costs beside its bytes, about.
const formOverhead = 128

func (b *formBudget) spend(e *Entry, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(bytes) + formOverhead
	b.total += n
	b.queue = append(b.queue, spent{weak.Make(e), n})
	for b.total > b.max && b.first < len(b.queue) {
		oldest := b.queue[b.first]
		b.first++
		b.total -= oldest.bytes
		if e := oldest.entry.Value(); e != nil {
			e.dropForms()
		}
	}
	if b.first > len(b.queue)/2 {
		b.queue = append(b.queue[:0], b.queue[b.first:]...)
		b.first = 0
	}
}
