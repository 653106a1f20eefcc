package faultinject

import (
	"context"
	"iter"

	"orch.io/controlplane/storage"
)

// Watch implements storage.Backend.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		s.mu.Lock()
		end := s.watch
		s.mu.Unlock()
		f, err := s.meet(ctx, Call{Op: OpWatch, Key: prefix, At: after})
		if err != nil || f.End {
			return
		}
		if f.Err != nil {
			yield(nil, f.Err)
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
			yield(nil, err)
		}
	}
}

// reason reports whether the watches were ended, and returns the error of EndWatches.
func (e *ending) reason() (bool, error) {
	select {
	case <-e.closed:
		return true, e.err
	default:
		return false, nil
	}
}

// pass yields the commits of the wrapped store with the faults of the plan. It returns false if nothing may be yielded
// afterwards, and true if the watch was ended by EndWatches or its context.
func (s *Store) pass(ctx context.Context, end *ending, commits iter.Seq2[[]storage.Event, error], yield func([]storage.Event, error) bool) bool {
	for events, err := range commits {
		if ended, _ := end.reason(); ended {
			return true
		}
		if err != nil {
			yield(nil, err)
			return false
		}
		kept, f, err := s.events(ctx, events)
		if err != nil {
			return true
		}
		if f.End {
			return false
		}
		if f.Err != nil {
			yield(nil, f.Err)
			return false
		}
		if len(kept) > 0 && !yield(kept, nil) {
			return false
		}
	}
	return true
}

// events returns the events of a commit that are not dropped. If the plan ends the watch at one of the events, it returns
// that fault instead.
func (s *Store) events(ctx context.Context, events []storage.Event) (kept []storage.Event, f Fault, err error) {
	for _, e := range events {
		f, err := s.meet(ctx, Call{Op: OpEvent, Key: e.Key, At: e.Revision})
		if err != nil || f.End || f.Err != nil {
			return nil, f, err
		}
		if !f.Drop {
			kept = append(kept, e)
		}
	}
	return kept, Fault{}, nil
}
