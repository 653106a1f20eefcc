package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/server/internal/background"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
)

// Loop is a background loop, see registry.Loop.
type Loop = registry.Loop

// builtinLoops are the background loops that every server has.
func (s *Server) builtinLoops() []Loop {
	loops := []Loop{background.Namespaces(s.names), background.Garbage(s.names, s.storedUID), background.Events()}
	if s.definitions.cache != nil {
		loops = append(loops, s.definitionLoop())
	}
	for _, t := range s.catalog.Now().Types() {
		if t.Grace != nil {
			loops = append(loops, objects.Ending(t))
		}
	}
	return loops
}

// Run runs the background loops until the context ends or the server shuts
// down, and returns when they have ended. Call it once.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.closing { // shut down before it began: nothing to run
		s.mu.Unlock()
		return nil
	}
	if s.runners != nil {
		s.mu.Unlock()
		return errors.New("the loops were started already")
	}
	s.loopsRun.Add(1)
	for _, l := range s.loops {
		s.runners = append(s.runners, background.NewRunner(l, s.hub, s.client, s.log, s.panicked))
	}
	s.mu.Unlock()
	for _, r := range s.runners {
		r.Pull() // what is there now; what goes from here on was seen
	}
	close(s.begun)
	defer s.loopsRun.Done()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.life, cancel)
	defer stop()
	var all sync.WaitGroup
	for _, r := range s.runners {
		all.Go(func() { r.Run(ctx) })
	}
	all.Wait()
	return nil
}

// Running is closed when Run has begun and the background loops know every
// object that was there: an owner deleted after that is one they have seen.
func (s *Server) Running() <-chan struct{} { return s.begun }

// Settle waits until the background loops have seen every commit and have
// nothing to do: no key waits, and none is due again within five seconds. It
// waits for Run to begin.
func (s *Server) Settle(ctx context.Context) error {
	select {
	case <-s.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		rev, err := s.backend.Revision(ctx)
		if err != nil {
			return err
		}
		if err := s.hub.Wait(ctx, rev); err != nil {
			return err
		}
		for _, r := range s.runners {
			if err := r.Settle(ctx, rev); err != nil {
				return err
			}
		}
		if now, err := s.backend.Revision(ctx); err != nil || now == rev {
			return err
		}
	}
}

// Shutdown ends the server: new requests are refused, watches end, requests in
// flight finish, loops stop, the store is closed. It returns when nothing of
// the server runs any more, or with the context's error if that takes too long
// (what is left then ends by itself). A second call returns nil.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil
	}
	s.closing = true
	s.end()
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		s.requests.Wait()
		s.loopsRun.Wait()
		close(idle)
	}()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = fmt.Errorf("requests still run: %w", ctx.Err())
	}
	return errors.Join(err, s.hub.Close(), s.backend.Close())
}

// Drain makes /readyz fail while everything else goes on, so that load
// balancers look elsewhere before Shutdown.
func (s *Server) Drain() { s.notReady.Store(true) }

// storedUID reads the uid of an object from the store itself, whether its type
// is served or not; "" if there is no such object.
func (s *Server) storedUID(ctx context.Context, r meta.GroupResource, key meta.Key) (string, error) {
	rec, err := s.backend.Get(ctx, registry.StorageKey(r, key), 0)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var stored struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(rec.Value, &stored); err != nil || stored.Metadata.UID == "" {
		return "", fmt.Errorf("what is stored as %s %s cannot be read: %w", r, key, cmp.Or(err, errors.New("it has no uid")))
	}
	return stored.Metadata.UID, nil
}
