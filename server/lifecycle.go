package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/reconcile"
	"orch.io/controlplane/server/internal/controllers"
	"orch.io/controlplane/server/internal/objects"
)

// builtinControllers are the controllers that every server has.
func (s *Server) builtinControllers() []client.Controller {
	list := []client.Controller{controllers.Namespaces(s.names, objects.Content{Client: s.client}, s.elsewhere), controllers.Garbage(s.names, s.objects.UID, s.servedElsewhere), unadmitted(controllers.Events())}
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
	if c, ok := s.objects.Sweep(); ok {
		list = append(list, c)
	}
	if r, ok := s.migrationKind(); ok {
		list = append(list, s.migrator(r))
	}
	for _, t := range s.catalog.Now().Types() {
		if t.Grace != nil {
			list = append(list, unadmitted(objects.Ending(t)))
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

// unadmitted makes a controller delete without asking admission: its deletions expire objects,
// or complete deletions that admission has allowed.
func unadmitted(c client.Controller) client.Controller {
	reconcile := c.Reconcile
	c.Reconcile = func(ctx context.Context, cl client.Client, key string) (time.Duration, error) {
		return reconcile(objects.Unadmitted(ctx), cl, key)
	}
	return c
}

// plugged is the controller of an admission plugin, which may ask for keys itself.
type plugged struct {
	controller client.Controller
	runner     atomic.Pointer[reconcile.Loop[client.Event]] // nil until Run
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
//
// Where several servers may be over the store (storage.Shared), most controllers run in one
// of them at a time, in the one that holds their Lease in the system namespace; see
// client.Controller. A server that is shut down or drained gives its Leases up when the
// controllers have stopped, and another one begins at once; one that dies is replaced when
// its Leases have run out, after 15 seconds. Over any other store all run at once.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.closing { // shut down before it began: nothing to run
		s.mu.Unlock()
		return nil
	}
	if s.ran {
		s.mu.Unlock()
		return errors.New("the controllers were started already")
	}
	s.ran = true
	s.controllersRun.Add(1)
	s.mu.Unlock()
	defer s.controllersRun.Done()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	leading, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.leading, stop)()
	every, led := s.crews()
	var all, undecided sync.WaitGroup
	undecided.Add(1 + len(led))
	faults := make([]error, 1+len(led))
	run := func(i int, part func(decided func()) error) {
		all.Go(func() {
			decided := sync.OnceFunc(undecided.Done)
			defer decided()
			if faults[i] = part(decided); faults[i] != nil {
				s.breakOff(faults[i])
				cancel()
			}
		})
	}
	run(0, func(begun func()) error { return s.work(ctx, every, s.client, false, begun) })
	as := identity()
	for i, c := range led {
		run(1+i, func(decided func()) error { return s.leadCrew(leading, c, as, decided) })
	}
	if s.advertise.IsValid() && s.sharesStore() {
		all.Go(func() { s.present(leading) })
	}
	undecided.Wait()
	if s.runFault() == nil {
		close(s.begun)
	}
	all.Wait()
	return errors.Join(faults...)
}

// breakOff notes why the controllers do not run.
func (s *Server) breakOff(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		s.fault = err
		close(s.broken)
	}
}

// runFault returns why the controllers do not run, nil if nothing is wrong with them.
func (s *Server) runFault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// work runs controllers until the context ends. begun is called when they know every object
// that was there; again says that they ran before.
func (s *Server) work(ctx context.Context, members []member, c client.Client, again bool, begun func()) error {
	runners := make([]*reconcile.Loop[client.Event], 0, len(members))
	for _, m := range members {
		r, err := s.newLoop(m.Controller, c)
		if err != nil {
			for _, r := range runners {
				r.Close()
			}
			return err
		}
		runners = append(runners, r)
	}
	s.mu.Lock()
	s.runners = append(slices.Clip(s.runners), runners...)
	s.mu.Unlock()
	var all sync.WaitGroup
	for i, r := range runners {
		if p := members[i].plugged; p != nil {
			p.runner.Store(r)
			defer p.runner.Store(nil)
		}
		if again {
			r.Forget()
		}
		r.Pull() // what is there now; what goes from here on was seen
	}
	begun()
	for _, r := range runners {
		all.Go(func() { r.Run(ctx) })
	}
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runners = slices.DeleteFunc(slices.Clone(s.runners), func(r *reconcile.Loop[client.Event]) bool { return slices.Contains(runners, r) })
	return nil
}

// newLoop returns the loop of a controller.
func (s *Server) newLoop(k client.Controller, c client.Client) (*reconcile.Loop[client.Event], error) {
	feed := s.hub.Feed
	if k.Identity {
		feed = s.hub.IdentityFeed
	}
	return reconcile.New(reconcile.Options[client.Event]{
		Name: k.Name, Workers: k.Workers, MapEvent: k.MapEvent, Forget: k.Forget, Log: s.log, Metrics: s.metrics.registry,
		Attrs: func(e client.Event) []any {
			return []any{"resource", e.Resource, "namespace", e.Key.Namespace, "name", e.Key.Name}
		},
		Reconcile: func(ctx context.Context, key string) (time.Duration, error) { return k.Reconcile(ctx, c, key) },
		Panicked:  func(p any, attrs ...any) { s.errors.Panic(k.Name, p, attrs...) },
	}, reconcile.Feed[client.Event](feed(k.Types...)))
}

// running returns the runners of the controllers that run now.
func (s *Server) running() []*reconcile.Loop[client.Event] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runners
}

// Running is closed when Run has begun and the controllers know every
// object that was there: an owner deleted after that is one they have seen. Of those that
// one of several servers leads it is known which one does. If Run fails before that it is
// not closed.
func (s *Server) Running() <-chan struct{} { return s.begun }

// Settle waits until the controllers have seen every commit and have
// nothing to do: no key waits, and none is due again within five seconds. It
// waits for Run to begin. Controllers that another server leads are not waited for. If Run has
// failed it returns why.
func (s *Server) Settle(ctx context.Context) error {
	select {
	case <-s.begun:
	case <-s.broken:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		if err := s.runFault(); err != nil {
			return err
		}
		rev, err := s.backend.Revision(ctx)
		if err != nil {
			return err
		}
		if err := s.hub.Wait(ctx, rev); err != nil {
			return err
		}
		runners := s.running()
		for _, r := range runners {
			if err := r.Settle(ctx, rev); err != nil {
				return err
			}
		}
		if now, err := s.backend.Revision(ctx); err != nil || now == rev && slices.Equal(runners, s.running()) {
			return cmp.Or(err, s.runFault())
		}
	}
}

// EndWatches ends watches and whatever else lasts as long as its caller wants, those that begin
// from now on at once. Other requests are served until Shutdown, for which a net/http server ends
// first that has this function registered by RegisterOnShutdown: it waits for all requests.
func (s *Server) EndWatches() { s.endWatches() }

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
	s.errors.Close()
	s.chain.Close()
	if s.aggregation != nil {
		s.aggregation.Close()
	}
	for _, t := range s.catalog.Now().Types() {
		endConverter(t)
	}
	return errors.Join(err, s.hub.Close(), s.backend.Close())
}

// Drain makes /readyz fail, so that load balancers look elsewhere before Shutdown, and hands
// the controllers that the server leads over to another one. Everything else goes on.
func (s *Server) Drain() {
	s.notReady.Store(true)
	s.resign()
}
