package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/controllers"
	"orch.io/controlplane/server/internal/manager"
	"orch.io/controlplane/server/internal/objects"
)

// ControllerNames returns the names of the built-in controllers that Builder.RunControllers selects
// from, with those of package access. A server has the controllers whose kinds and parts it has.
func ControllerNames() []string { return manager.BuiltinNames() }

// builtinControllers are the controllers that every server has.
func (s *Server) builtinControllers() []client.Controller {
	list := []client.Controller{controllers.Namespaces(s.names, objects.Content{Client: s.client}, s.aggregator.Collections), controllers.Garbage(s.names, s.objects.UID, func(gv meta.GroupVersion) bool { return s.aggregator.Table().Remote(gv) != nil }), unadmitted(controllers.Events())}
	if s.catalog.Extensible() {
		list = append(list, s.catalog.Controller(s.objects, s.client))
	}
	if f, ok := s.flowObjects(); ok {
		list = append(list, f.Controller())
	}
	if s.aggregator != nil {
		list = append(list, s.aggregator.Registration(s.served(s.catalog.Resource())...))
	}
	if n, ok := s.serviceNetworks(); ok {
		list = append(list, n.Controller())
	}
	if c, ok := s.objects.Sweep(); ok {
		list = append(list, c)
	}
	if c, ok := s.migrator.Controller(); ok {
		list = append(list, c)
	}
	for _, t := range s.catalog.Known().Types() {
		if t.GracePeriod != nil {
			list = append(list, unadmitted(objects.Ending(t)))
		}
		switch t.GroupResource() {
		case meta.GroupResource{Resource: "persistentvolumeclaims"}:
			list = append(list, controllers.ClaimProtection(s.names, s.client))
		case meta.GroupResource{Resource: "persistentvolumes"}:
			list = append(list, controllers.VolumeProtection(s.names))
		case meta.GroupResource{Group: s.names.Group(wellknown.GroupStorage), Resource: "volumeattributesclasses"}:
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

// serviceNetworks looks after the networks of services, if both are served.
func (s *Server) serviceNetworks() (n controllers.ServiceNetworks, ok bool) {
	services := s.catalog.Known().Type(meta.GroupResource{Resource: "services"})
	if services == nil || services.Pool == nil || services.Pool.Initial == nil {
		return n, false
	}
	source := meta.GroupResource{Group: s.names.Group(services.Pool.Source.Group), Resource: services.Pool.Source.Resource}
	n = controllers.ServiceNetworks{Names: s.names, Initial: services.Pool.Initial(s.names)}
	return n, s.catalog.Known().Type(source) != nil
}

// Run runs the controllers until the context ends or Shutdown is called, and returns when they have
// stopped. Call it once.
//
// If several servers may share the store (storage.Shared), most controllers run in one server at a
// time: the one that holds their Lease in the system namespace, see client.Controller. A server
// that is shut down or drained releases its Leases when its controllers have stopped, and another
// server takes over at once. The Leases of a server that died expire after 15 seconds. With any other
// store all controllers run at once.
func (s *Server) Run(ctx context.Context) error { return s.manager.Run(ctx) }

// Running returns a channel that is closed when Run has begun, the controllers have seen every object
// that existed, and it is known which server holds each Lease. If Run fails before that, the channel
// stays open.
func (s *Server) Running() <-chan struct{} { return s.manager.Running() }

// Settle waits until Run has begun, the controllers of this server have seen every commit, and no key
// is queued or due within five seconds. It does not wait for controllers that run in other servers.
// If Run failed, Settle returns the error of Run.
func (s *Server) Settle(ctx context.Context) error { return s.manager.Settle(ctx) }

// EndWatches ends watches and whatever else lasts as long as its caller wants, those that begin
// from now on at once. Other requests are served until Shutdown, for which a net/http server ends
// first that has this function registered by RegisterOnShutdown: it waits for all requests.
func (s *Server) EndWatches() { s.lifetime.End() }

// Shutdown ends the server: new requests are refused, watches end, requests in
// flight finish, controllers stop, the store is closed. It returns when nothing of
// the server runs any more, or with the context's error if that takes too long
// (what is left then ends by itself). A second call returns nil.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.lifetime.Close() {
		return nil
	}
	s.manager.Stop()
	idle := make(chan struct{})
	go func() {
		s.lifetime.Wait()
		s.manager.Wait()
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
	if s.aggregator != nil {
		s.aggregator.Close()
	}
	s.catalog.Close()
	return errors.Join(err, s.hub.Close(), s.backend.Close())
}

// Drain makes /readyz fail, so that load balancers send requests to other servers before Shutdown, and
// releases the server's Leases, so that other servers run its controllers. Requests are still served.
func (s *Server) Drain() {
	s.health.Drain()
	s.manager.Drain()
}
