package etcdstore

import (
	"context"
	"sync"

	"orch.io/controlplane/storage"
)

// shared combines concurrent reads into one call. A caller that arrives while a call is running waits
// for the next call, because the running call may have read its result before the caller arrived; so a
// result is never older than the request. Each caller can widen the parameters of the call that it
// waits for.
type shared[Q, T any] struct {
	read func(ctx context.Context, of Q) (T, error)

	mu      sync.Mutex
	running bool
	next    *answer[Q, T] // the result of the call after the running one; guarded by mu
}

type answer[Q, T any] struct {
	query Q
	done  chan struct{}
	value T
	err   error
}

// get returns the result of a call that begins after get was called.
func (r *shared[Q, T]) get(ctx context.Context, s *Store, widen func(of *Q)) (value T, err error) {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return value, err
	}
	defer leave()
	a := r.join(s, widen)
	select {
	case <-a.done:
		return a.value, s.storageError(ctx, a.err)
	case <-inner.Done():
		return value, s.storageError(ctx, inner.Err())
	}
}

func (r *shared[Q, T]) join(s *Store, widen func(of *Q)) *answer[Q, T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &answer[Q, T]{done: make(chan struct{})}
	}
	widen(&r.next.query)
	if !r.running {
		r.running = true
		s.background.Go(func() { r.run(s.lifetime) })
	}
	return r.next
}

// run makes calls as long as a caller waits for one.
func (r *shared[Q, T]) run(life context.Context) {
	for {
		r.mu.Lock()
		a := r.next
		r.next, r.running = nil, a != nil
		r.mu.Unlock()
		if a == nil {
			return
		}
		a.value, a.err = r.read(life, a.query)
		close(a.done)
	}
}

// noParams is the widen function of a read without parameters.
func noParams(*struct{}) {}

// Revision implements storage.Backend.
func (s *Store) Revision(ctx context.Context) (storage.Revision, error) {
	at, err := s.heads.get(ctx, s, noParams)
	return at.revision, err
}
