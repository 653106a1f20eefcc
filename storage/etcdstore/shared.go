package etcdstore

import (
	"context"
	"sync"

	"orch.io/controlplane/storage"
)

// shared is a read that one call makes for all who wait for it. Who asks while a call is
// under way waits for the next one, since that one may have been answered already before the
// asking; so what is returned is never older than the question. Each of them can widen what is
// asked of the call.
type shared[Q, T any] struct {
	read func(ctx context.Context, of Q) (T, error)

	mu   sync.Mutex
	busy bool
	next *answer[Q, T] // of the call that begins when the one under way has ended
}

type answer[Q, T any] struct {
	of    Q
	done  chan struct{}
	value T
	err   error
}

// ask returns what a call that begins from now on reads.
func (r *shared[Q, T]) ask(ctx context.Context, s *Store, widen func(of *Q)) (value T, err error) {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return value, err
	}
	defer leave()
	a := r.join(s, widen)
	select {
	case <-a.done:
		return a.value, s.told(ctx, a.err)
	case <-inner.Done():
		return value, s.told(ctx, inner.Err())
	}
}

func (r *shared[Q, T]) join(s *Store, widen func(of *Q)) *answer[Q, T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &answer[Q, T]{done: make(chan struct{})}
	}
	widen(&r.next.of)
	if !r.busy {
		r.busy = true
		s.done.Go(func() { r.run(s.life) })
	}
	return r.next
}

// run makes calls for as long as somebody waits for one.
func (r *shared[Q, T]) run(life context.Context) {
	for {
		r.mu.Lock()
		a := r.next
		r.next, r.busy = nil, a != nil
		r.mu.Unlock()
		if a == nil {
			return
		}
		a.value, a.err = r.read(life, a.of)
		close(a.done)
	}
}

// whole is for a read that is the same for all.
func whole(*struct{}) {}

// Revision implements storage.Backend.
func (s *Store) Revision(ctx context.Context) (storage.Revision, error) {
	at, err := s.heads.ask(ctx, s, whole)
	return at.revision, err
}
