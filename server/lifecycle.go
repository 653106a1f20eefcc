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
// from, including the controllers of package access. A server has a controller only if it has the
// kinds and parts that the controller needs.
func ControllerNames() []string { return manager.BuiltinNames() }

// builtinControllers returns the built-in controllers for the kinds and parts that the server has.
func (s *Server) builtinControllers() []client.Controller {
	list := []client.Controller{controllers.Namespaces(s.names, objects.NamespaceContent{Client: s.client}, s.aggregator.Collections), controllers.Garbage(s.names, s.objects.UID, func(gv meta.GroupVersion) bool { return s.aggregator.Table().Remote(gv) != nil }), unadmitted(controllers.Events())}
	if s.catalog.Extensible() {
		list = append(list, s.catalog.Controller(s.objects, s.client))
	}
	if f, ok := s.flowObjects(); ok {
		list = append(list, f.Controller())
	}
	if s.aggregator != nil {
		list = append(list, s.aggregator.Registration(s.servedResources(s.catalog.Resource())...))
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
			list = append(list, unadmitted(objects.DeletionCompleter(t)))
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

// serviceNetworks returns the controller of the networks of services. ok is false if services, or
// the kind that describes their networks, are not registered.
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
// time: the server that holds their Lease in the system namespace, see client.Controller. A server
// that is shut down or drained releases its Leases when its controllers have stopped, and another
// server takes over at once. The Leases of a server that died expire after 15 seconds. With any
// other store, all controllers run in this server.
func (s *Server) Run(ctx context.Context) error { return s.manager.Run(ctx) }

// Running returns a channel that is closed when Run has begun, the controllers have seen every object
// that existed, and it is known which server holds each Lease. If Run fails before that, the channel
// stays open.
func (s *Server) Running() <-chan struct{} { return s.manager.Running() }

// Settle waits until Run has begun, the controllers of this server have seen every commit, and no key
// is queued or due within five seconds. It does not wait for controllers that run in other servers.
// If Run failed, Settle returns the error of Run.
func (s *Server) Settle(ctx context.Context) error { return s.manager.Settle(ctx) }

// EndWatches ends all watches and connections, and from now on ends new ones at once. Other
// requests are served until Shutdown. Register EndWatches with http.Server.RegisterOnShutdown:
// Shutdown of the http.Server waits for all requests and would otherwise wait for the watches.
func (s *Server) EndWatches() { s.lifetime.End() }

// Shutdown stops the server: it refuses new requests, ends watches, waits for requests in flight
// and for controllers, and closes the store. It returns when nothing of the server runs any more.
// If the context ends first, Shutdown closes the store at once and returns the context's error;
// remaining requests end in the background. Only the first call has an effect; later calls return
// nil.
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
		err = fmt.Errorf("requests or controllers are still running: %w", ctx.Err())
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
