package faulty

import (
	"context"
	"iter"

	"orch.io/controlplane/storage"
)

// Watch implements storage.Backend.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		s.mu.Lock()
		end := s.watch
		s.mu.Unlock()
		f, err := s.meet(ctx, Call{Op: OpWatch, Key: prefix, At: after})
		if err != nil || f.End {
			return
		}
		if f.Err != nil {
			yield(storage.Event{}, f.Err)
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		waiting := make(chan struct{})
		go func() {
			defer close(waiting)
			select {
			case <-end.closed:
				cancel()
			case <-inner.Done():
			}
		}()
		defer func() {
			cancel()
			<-waiting
		}()
		if !s.pass(inner, end, s.inner.Watch(inner, prefix, after), yield) {
			return
		}
		if ended, err := end.reason(); ended && err != nil && ctx.Err() == nil {
			yield(storage.Event{}, err)
		}
	}
}

// reason reports whether the watches have been ended, and with what.
func (e *ending) reason() (bool, error) {
	select {
	case <-e.closed:
		return true, e.err
	default:
		return false, nil
	}
}

// pass yields the events below as the plan says. It reports false if nothing
// may be yielded any more.
func (s *Store) pass(ctx context.Context, end *ending, events iter.Seq2[storage.Event, error], yield func(storage.Event, error) bool) bool {
	for e, err := range events {
		if ended, _ := end.reason(); ended {
			return true
		}
		if err != nil {
			yield(e, err)
			return false
		}
		f, err := s.meet(ctx, Call{Op: OpEvent, Key: e.Key, At: e.Revision})
		if err != nil {
			return true
		}
		if f.End {
			return false
		}
		if f.Err != nil {
			yield(storage.Event{}, f.Err)
			return false
		}
		if !f.Drop && !yield(e, nil) {
			return false
		}
	}
	return true
}
