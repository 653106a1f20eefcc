package watch

import (
	"context"
	"errors"
)

// Bounds of what is made at a time, about what one question to a converter holds. What
// was made is kept, whatever becomes of the rest.
const (
	formsAtATime = 500
	bytesAtATime = 3 << 20 // of the objects, unless it is one
)

// Forms returns a representation of each of some entries, as Form does, where many are
// made at a time: make is asked about those that have none. What it makes for one caller
// serves all who ask meanwhile. So does its error, unless that caller went away or had
// asked for more than they: what fails may be none of theirs. No lock is held while it runs.
func Forms(ctx context.Context, entries []*Entry, key FormKey, make func([]*Entry) ([][]byte, error)) ([][]byte, error) {
	forms := formsOf(entries, key)
	missing := forms
	for {
		mine := newMaking()
		others, rest := mine.claim(missing)
		switch {
		case len(mine.forms) > 0: // what nobody makes comes first
			if err := mine.run(ctx, make); err != nil {
				return nil, err
			}
		case len(others) == 0:
			return bytesOf(forms), nil
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

// KeepForm keeps a representation that is made already.
func (e *Entry) KeepForm(key FormKey, b []byte) { e.fill(e.findForm(formKey{FormKey: key}), b) }

// entryForm is a form of an entry, which may have dropped it.
type entryForm struct {
	*form
	of *Entry
}

func formsOf(entries []*Entry, key FormKey) []entryForm {
	forms := make([]entryForm, len(entries))
	for i, e := range entries {
		forms[i] = entryForm{e.findForm(formKey{FormKey: key}), e}
	}
	return forms
}

func bytesOf(forms []entryForm) [][]byte {
	list := make([][]byte, len(forms))
	for i, f := range forms {
		list[i] = *f.bytes.Load()
	}
	return list
}

// making is one run of what makes forms.
type making struct {
	forms []entryForm   // that it makes
	done  chan struct{} // closed at its end; what follows is written before
	err   error
	left  bool // the caller went away, which says nothing of the forms
}

var errBrokenOff = errors.New("watch: making a form was broken off")

func newMaking() *making { return &making{done: make(chan struct{}), err: errBrokenOff} }

// claim takes as many forms as may be made at a time, of those that nobody makes. It
// returns how many of the others each making makes, and those that are missing still.
func (m *making) claim(forms []entryForm) (others map[*making]int, missing []entryForm) {
	others = map[*making]int{}
	size := 0
	for i, f := range forms {
		if len(m.forms) > 0 && (len(m.forms) == formsAtATime || size+f.of.size() > bytesAtATime) {
			return others, append(missing, forms[i:]...)
		}
		switch by := f.claim(m); {
		case by == nil:
			m.forms = append(m.forms, f)
			size += f.of.size()
		case by != m:
			others[by]++
			missing = append(missing, f)
		}
	}
	return others, missing
}

// claim returns who makes the form: nobody, until m does from now on; m, or nobody has to.
func (f *form) claim(m *making) *making {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes.Load() != nil {
		return m
	}
	by := f.by
	if by == nil {
		f.by = m
	}
	return by
}

func (f *form) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by = nil
}

// run makes the forms that m has claimed.
func (m *making) run(ctx context.Context, make func([]*Entry) ([][]byte, error)) error {
	defer func() {
		m.left = ctx.Err() != nil
		for _, f := range m.forms {
			f.release()
		}
		close(m.done)
	}()
	var some []*Entry
	for _, f := range m.forms {
		some = append(some, f.of)
	}
	made, err := make(some)
	if m.err = err; err != nil {
		return err
	}
	for i, f := range m.forms {
		f.of.fill(f.form, made[i])
	}
	return nil
}

// wait waits for the end of another's making. An error is that of the
// forms, if the one who waits asked for all of them.
func (m *making) wait(ctx context.Context, asked int) error {
	select {
	case <-m.done:
		if m.left || asked < len(m.forms) {
			return nil // one has to ask again
		}
		return m.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
