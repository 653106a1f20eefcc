package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/controllers"
	"orch.io/controlplane/server/internal/definitions"
	"orch.io/controlplane/server/internal/discovery"
	"orch.io/controlplane/server/internal/door"
	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/health"
	"orch.io/controlplane/server/internal/manager"
	"orch.io/controlplane/server/internal/migration"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/proxy"
	"orch.io/controlplane/server/internal/requestmetrics"
	"orch.io/controlplane/server/internal/verbs"
	"orch.io/controlplane/storage"
)

// Server is an API server. It is an http.Handler and may be mounted on any mux, also below a prefix
// with http.StripPrefix. Its methods may be called concurrently.
type Server struct {
	names         names.Profile
	backend       storage.Backend
	catalog       *definitions.Catalog
	hub           *objectcache.Set
	objects       *objects.Store
	aggregator    *aggregator.Aggregator // nil if the kind APIService is not registered
	log           *slog.Logger
	errors        *errorlog.Log
	responder     exchange.Responder
	capacity      *capacity.Limiter
	authenticator *auth.UnionAuthenticator
	door          *door.Door
	verbs         *verbs.Handler
	handlers      map[string]http.Handler
	proxy         *proxy.Proxy
	discovery     *discovery.Handler
	registry      *metrics.Registry
	metrics       *requestmetrics.Metrics
	health        *health.Handler
	client        *objects.Client
	chain         *admission.Chain
	manager       *manager.Manager
	migrator      *migration.Migrator
	version       string

	lifetime exchange.Lifetime
}

// Objects returns a client that accesses the objects directly, without authentication and
// authorization. It is meant for the program that runs the server.
func (s *Server) Objects() client.Client { return s.client }

// Metrics returns the registry behind /metrics, so that a program can register its own metrics.
// They stay registered after Shutdown.
func (s *Server) Metrics() prometheus.Registerer { return s.registry }

// SetFlowControl replaces Serving.FlowControl and the objects of flow control while the server
// runs. Requests keep their slots and seats; waiting requests are classified again. If the
// configuration is invalid, SetFlowControl returns an error and changes nothing. It may be called
// at any time.
func (s *Server) SetFlowControl(config flowcontrol.Config) error { return s.capacity.SetConfig(config) }

// flowObjects returns the controller that follows the objects of flow control. ok is false if their
// kinds are not registered.
func (s *Server) flowObjects() (f controllers.FlowControl, ok bool) {
	group := s.names.Group(wellknown.GroupFlowControl)
	for _, resource := range []string{"flowschemas", "prioritylevelconfigurations"} {
		if s.catalog.Known().Type(meta.GroupResource{Group: group, Resource: resource}) == nil {
			return f, false
		}
	}
	return controllers.FlowControl{Names: s.names, Apply: s.capacity.Follow}, true
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, h *http.Request) { s.serve(w, h, s.authenticator) }

// serve handles a request after the given authenticator identified its user.
func (s *Server) serve(to http.ResponseWriter, h *http.Request, who auth.Authenticator) {
	growStack()
	w, r := s.responder.New(to, h)
	if !s.lifetime.Enter() {
		w.Header().Set("Connection", "close") // so that the next attempt reaches another server
		w.Fail(exchange.ShuttingDown())
		return
	}
	defer s.lifetime.Leave()
	s.door.Begin(to, r)
	defer r.Deadline.Release()
	defer s.metrics.Finished(r, w, time.Now())
	defer s.door.End(w, r)
	defer func() {
		if p := recover(); p != nil {
			w.Panicked(p)
		}
	}()
	ctx, cancel, ok := s.door.Enter(w, r, who)
	defer cancel()
	if ok {
		s.route(ctx, w, r)
	}
}

// growStack grows the goroutine's stack in one step to the size that most requests need. HTTP/2
// uses a new goroutine for each request, whose stack would otherwise grow by doubling and copy more
// frames each time, which costs about 8 % of a write.
//
//go:noinline
func growStack() byte {
	var room [12 << 10]byte
	return room[time.Now().Nanosecond()&1]
}
