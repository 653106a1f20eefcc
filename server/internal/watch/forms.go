package watch

import (
	"context"
	"errors"
)

// Forms returns a representation of each of some entries, as Form does, where many are
// made at a time: make is asked about all that have none. What it makes for one caller
// serves all who ask meanwhile. So does its error, unless that caller went away or had
// asked for more than they: what fails may be none of theirs. No lock is held while it runs.
func Forms(ctx context.Context, entries []*Entry, key FormKey, make func([]*Entry) ([][]byte, error)) ([][]byte, error) {
	forms := formsOf(entries, key)
	for {
		mine := newMaking()
		var own []int
		others := map[*making]int{} // how many of these forms each makes
		for i, f := range forms {
			switch by := f.claim(mine); {
			case by == nil:
				own = append(own, i)
			case by != mine:
				others[by]++
			}
		}
		if err := mine.run(ctx, entries, forms, own, make); err != nil {
			return nil, err
		}
		for other, asked := range others {
			if err := other.wait(ctx, asked); err != nil {
				return nil, err
			}
		}
		if len(others) == 0 {
			return bytesOf(forms), nil
		}
	}
}

// KeepForm keeps a representation that is made already.
func (e *Entry) KeepForm(key FormKey, b []byte) { e.fill(e.findForm(formKey{FormKey: key}), b) }

func formsOf(entries []*Entry, key FormKey) []*form {
	forms := make([]*form, len(entries))
	for i, e := range entries {
		forms[i] = e.findForm(formKey{FormKey: key})
	}
	return forms
}

func bytesOf(forms []*form) [][]byte {
	list := make([][]byte, len(forms))
	for i, f := range forms {
		list[i] = *f.bytes.Load()
	}
	return list
}

// making is one run of what makes forms.
type making struct {
	done chan struct{} // closed at its end; what follows is written before
	err  error
	many int  // forms that it makes
	left bool // the caller went away, which says nothing of the forms
}

var errBrokenOff = errors.New("watch: making a form was broken off")

func newMaking() *making { return &making{done: make(chan struct{}), err: errBrokenOff} }

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

// run makes the forms of own, which m has claimed.
func (m *making) run(ctx context.Context, entries []*Entry, forms []*form, own []int, make func([]*Entry) ([][]byte, error)) error {
	m.many = len(own)
	defer func() {
		m.left = ctx.Err() != nil
		for _, i := range own {
			forms[i].release()
		}
		close(m.done)
	}()
	if len(own) == 0 {
		m.err = nil
		return nil
	}
	var some []*Entry
	for _, i := range own {
		some = append(some, entries[i])
	}
	made, err := make(some)
	if m.err = err; err != nil {
		return err
	}
	for n, i := range own {
		entries[i].fill(forms[i], made[n])
	}
	return nil
}

// wait waits for the end of another's making. An error is that of the
// forms, if the one who waits asked for all of them.
func (m *making) wait(ctx context.Context, asked int) error {
	select {
	case <-m.done:
		if m.left || asked < m.many {
			return nil // one has to ask again
		}
		return m.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
