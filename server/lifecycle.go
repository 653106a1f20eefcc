package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/server/internal/controllers"
	"orch.io/controlplane/server/internal/objects"
)

// builtinControllers are the controllers that every server has.
func (s *Server) builtinControllers() []controller.Controller {
	list := []controller.Controller{controllers.Namespaces(s.names, objects.Content{Client: s.client}, s.elsewhere), controllers.Garbage(s.names, s.objects.UID, s.servedElsewhere), controllers.Events()}
	if s.definitions.cache != nil {
		list = append(list, s.definitionController())
	}
	if f, ok := s.flowObjects(); ok {
		list = append(list, f.Controller())
	}
	if s.aggregation != nil {
		list = append(list, s.aggregation.Registration(s.servedAmong(s.definitions.resource)...))
	}
	if n, ok := s.serviceNetworks(); ok {
		list = append(list, n.Controller())
	}
	if r, ok := s.migrationKind(); ok {
		list = append(list, s.migrator(r))
	}
	for _, t := range s.catalog.Now().Types() {
		if t.Grace != nil {
			list = append(list, objects.Ending(t))
		}
		switch t.GroupResource() {
		case meta.GroupResource{Resource: "persistentvolumeclaims"}:
			list = append(list, controllers.ClaimProtection(s.names, s.client))
		case meta.GroupResource{Resource: "persistentvolumes"}:
			list = append(list, controllers.VolumeProtection(s.names))
		case meta.GroupResource{Group: s.names.Group(names.GroupStorage), Resource: "volumeattributesclasses"}:
			list = append(list, controllers.ClassProtection(s.names))
		}
	}
	return list
}

// plugged is the controller of an admission plugin, which may ask for keys itself.
type plugged struct {
	controller controller.Controller
	runner     atomic.Pointer[controllers.Runner] // nil until Run
}

func (p *plugged) ask(key string, after time.Duration) {
	if r := p.runner.Load(); r != nil {
		r.Ask(key, after)
	}
}

// serviceNetworks looks after the networks of services, if both are served.
func (s *Server) serviceNetworks() (n controllers.ServiceNetworks, ok bool) {
	services := s.catalog.Now().Type(meta.GroupResource{Resource: "services"})
	if services == nil || services.Pool == nil || services.Pool.Initial == nil {
		return n, false
	}
	source := meta.GroupResource{Group: s.names.Group(services.Pool.Source.Group), Resource: services.Pool.Source.Resource}
	n = controllers.ServiceNetworks{Names: s.names, Initial: services.Pool.Initial(s.names)}
	return n, s.catalog.Now().Type(source) != nil
}

// Run runs the controllers until the context ends or the server shuts
// down, and returns when they have ended. Call it once.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.closing { // shut down before it began: nothing to run
		s.mu.Unlock()
		return nil
	}
	if s.runners != nil {
		s.mu.Unlock()
		return errors.New("the controllers were started already")
	}
	s.controllersRun.Add(1)
	err := s.makeRunners()
	s.mu.Unlock()
	if err != nil {
		s.controllersRun.Done()
		return err
	}
	for _, r := range s.runners {
		r.Pull() // what is there now; what goes from here on was seen
	}
	close(s.begun)
	defer s.controllersRun.Done()

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

// makeRunners makes a runner for each controller. The lock is held.
func (s *Server) makeRunners() error {
	add := func(c controller.Controller) (*controllers.Runner, error) {
		r, err := controllers.NewRunner(c, s.hub, s.client, s.log, s.metrics.registry, s.panicked)
		if err == nil {
			s.runners = append(s.runners, r)
		}
		return r, err
	}
	for _, c := range s.controllers {
		if _, err := add(c); err != nil {
			return err
		}
	}
	for _, p := range s.plugged {
		r, err := add(p.controller)
		if err != nil {
			return err
		}
		p.runner.Store(r)
	}
	return nil
}

// Running is closed when Run has begun and the controllers know every
// object that was there: an owner deleted after that is one they have seen.
func (s *Server) Running() <-chan struct{} { return s.begun }

// Settle waits until the controllers have seen every commit and have
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
// flight finish, controllers stop, the store is closed. It returns when nothing of
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
		s.controllersRun.Wait()
		close(idle)
	}()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = fmt.Errorf("requests still run: %w", ctx.Err())
	}
	s.failures.close()
	s.chain.Close()
	if s.aggregation != nil {
		s.aggregation.Close()
	}
	for _, t := range s.catalog.Now().Types() {
		endConverter(t)
	}
	return errors.Join(err, s.hub.Close(), s.backend.Close())
}

// Drain makes /readyz fail while everything else goes on, so that load
// balancers look elsewhere before Shutdown.
func (s *Server) Drain() { s.notReady.Store(true) }
