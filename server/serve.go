package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/reconcile"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/controllers"
	"orch.io/controlplane/server/internal/conversion"
	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/openapi"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// Server is a running API server. It is an http.Handler and may be mounted on
// any mux, also below a prefix with http.StripPrefix.
type Server struct {
	names         names.Profile
	rules         compat.Rules // where the specification and the reference differ
	features      *features.Set
	backend       storage.Backend
	stored        storage.Backend // backend, measured: what objects are read from and written to
	writer        storage.Writer  // nil: the backend is none
	catalog       resource.Catalog
	hub           *watch.Hub
	objects       *objects.Store
	definitions   definitions
	aggregation   *aggregation // nil: the server has no such kind
	limits        Limits
	log           *slog.Logger
	errors        *errorlog.Log
	responder     exchange.Responder
	capacity      *capacity.Limiter
	authenticator *auth.Methods
	authorizer    auth.Authorizer
	handlers      map[string]http.Handler
	connector     Connector // nil: none
	audit         auth.Auditor
	metrics       *counts
	conversions   *conversion.Webhooks
	slis          *slis
	client        *objects.Client
	chain         *admission.Chain
	controllers   []client.Controller
	plugged       []*plugged // controllers of admission plugins
	checks        map[string]func(context.Context) error
	version       string
	started       time.Time
	livezGrace    time.Duration
	advertise     netip.AddrPort // where others reach the server; zero: nobody is told

	notReady  atomic.Bool
	openapi   openapi.Cache
	discovery atomic.Pointer[discovered]
	foreign   atomic.Pointer[openapi.Others]

	life           context.Context // ends with the server; controllers end with it
	end            context.CancelFunc
	leading        context.Context // ends with life, or before; what the server leads ends with it
	resign         context.CancelFunc
	watching       context.Context // ends with life, or before; watches, and what else lasts, end with it
	endWatches     context.CancelFunc
	requests       sync.WaitGroup
	controllersRun sync.WaitGroup
	migrating      chan struct{} // has one for the migration that runs
	begun          chan struct{} // closed when Run has begun, see Running
	broken         chan struct{} // closed when Run has failed
	mu             sync.Mutex    // guards the rest, so that nothing is added to the groups after closing
	closing        bool
	ran            bool                            // Run was called
	fault          error                           // for which broken is closed
	runners        []*reconcile.Loop[client.Event] // of the controllers that run now
}

// Objects returns the server's own way to its objects, without authentication
// and authorization: for the program that runs it, not for callers.
func (s *Server) Objects() client.Client { return s.client }

// Metrics is where metrics are registered that /metrics shows: for what a program does
// around the server. They stay when the server has ended.
func (s *Server) Metrics() prometheus.Registerer { return s.metrics.registry }

// SetFlowControl replaces Serving.FlowControl and the objects of flow control while the server
// runs. Requests keep what they hold; waiting requests are classified again. An invalid
// configuration is an error and changes nothing. It may be called at any time.
func (s *Server) SetFlowControl(config flowcontrol.Config) error { return s.capacity.SetConfig(config) }

// flowObjects returns the parts that follow the objects of flow control, if their kinds are
// registered.
func (s *Server) flowObjects() (f controllers.FlowControl, ok bool) {
	group := s.names.Group(names.GroupFlowControl)
	for _, resource := range []string{"flowschemas", "prioritylevelconfigurations"} {
		if s.catalog.Now().Type(meta.GroupResource{Group: group, Resource: resource}) == nil {
			return f, false
		}
	}
	return controllers.FlowControl{Names: s.names, Apply: s.capacity.Follow}, true
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, h *http.Request) { s.serve(w, h, s.authenticator) }

// serve answers a request of the user that an authenticator finds: it authenticates the user,
// takes a slot, catches up with the store, authorizes and routes the request.
func (s *Server) serve(to http.ResponseWriter, h *http.Request, who auth.Authenticator) {
	growStack()
	w, r := s.responder.New(to, h)
	if !s.enter() {
		w.Header().Set("Connection", "close") // so that the next attempt reaches another server
		w.Fail(exchange.ShuttingDown())
		return
	}
	defer s.requests.Done()
	r.Usage.Begin(s.capacity)
	r.Deadline.Begin(to, h, s.limits.RequestTime)
	defer r.Deadline.Release()
	defer s.count(r, w, time.Now())
	defer s.endRecord(w, r)
	defer w.End()
	defer func() {
		if p := recover(); p != nil {
			w.Panicked(p)
		}
	}()
	s.locate(r)
	err := s.authenticate(w, r, who)
	full := r.Usage.AcquireSlot(slotOf(r))
	ctx, cancel := context.WithTimeout(s.objects.With(r.HTTP.Context(), &r.Index), r.Limit)
	defer cancel()
	if err == nil && full == nil {
		ctx, full, err = s.impersonate(ctx, w, r)
	}
	if err == nil && full == nil {
		full, err = s.catchUp(ctx, r)
	}
	if full != nil {
		reject(w, r, full)
		return
	}
	if err == nil {
		err = s.authorize(ctx, r)
	}
	if err != nil {
		w.Fail(err)
		return
	}
	s.route(ctx, w, r)
}

// reject refuses a request that has no slot. The caller gets a moment to take the response; if
// too many callers wait like that, the connection is cut without one.
func reject(w *exchange.Response, r *exchange.Request, why error) {
	if !r.Usage.AcquireRefusal() {
		panic(http.ErrAbortHandler)
	}
	r.Deadline.Cut()
	w.Fail(why)
}

// growStack grows the goroutine's stack at once to the size that most requests need. Growth by
// doubling, again for each request since HTTP/2 has a goroutine for each, copies ever more
// frames and costs some eight per cent of a write.
//
//go:noinline
func growStack() byte {
	var room [12 << 10]byte
	return room[time.Now().Nanosecond()&1]
}

// enter counts a request in, unless the server is closing.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.requests.Add(1)
	return true
}
