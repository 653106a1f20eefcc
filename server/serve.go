package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
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
	"orch.io/controlplane/internal/quirks"
	"orch.io/controlplane/internal/reconcile"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/conversion"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/openapi"
	"orch.io/controlplane/server/internal/requestinfo"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// Server is a running API server. It is an http.Handler and may be mounted on
// any mux, also below a prefix with http.StripPrefix.
type Server struct {
	names         names.Profile
	rules         quirks.Rules // where the specification and the reference differ
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
	failures      failures
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
	zipper        zipper
	advertise     netip.AddrPort // where others reach the server; zero: nobody is told

	shares
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

// ServeHTTP answers one request: who, whether, what.
func (s *Server) ServeHTTP(w http.ResponseWriter, h *http.Request) { s.serve(w, h, s.authenticator) }

// serve answers a request of the user whom an authenticator finds.
func (s *Server) serve(w http.ResponseWriter, h *http.Request, who auth.Authenticator) {
	growStack()
	r := &request{Info: requestinfo.Of(h), http: h, who: who, store: s.objects}
	r.id, r.remote = requestID(h.Header), s.remoteOf(r)
	head, values := w.Header(), []string{r.id, "no-cache, private"}
	head[auditID], head["Cache-Control"] = values[:1:1], values[1:]
	if !s.enter() {
		head.Set("Connection", "close") // the next try is to come to another server
		s.fail(w, r, shuttingDown())
		return
	}
	defer s.requests.Done()
	out := &response{ResponseWriter: w, server: s, request: r}
	r.deadline.begin(w, h, s.limits.RequestTime)
	defer r.deadline.release()
	defer s.count(r, out, time.Now())
	defer s.endRecord(out, r)
	defer s.leave(out, r)
	defer r.rest()
	defer func() {
		if p := recover(); p != nil {
			r.aborted = p == http.ErrAbortHandler
			r.record.outcome.Panicked = p != http.ErrAbortHandler
			s.recovered(out, r, p)
		}
	}()
	err := s.authenticate(out, r)
	full := s.acquirePlace(r)
	if err == nil && full == nil {
		full, err = s.impersonate(out, r)
	}
	if err == nil && full == nil {
		full, err = s.catchUp(r)
	}
	if full != nil {
		s.reject(out, r, full)
		return
	}
	if err == nil {
		err = s.authorize(r)
	}
	if err != nil {
		s.fail(out, r, err)
		return
	}
	s.route(out, r)
}

// shuttingDown tells callers to try again, elsewhere or when the server is back.
func shuttingDown() *meta.Status {
	st := meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "the server is shutting down")
	st.Details = &meta.Details{RetryAfterSeconds: 1}
	return st
}

// growStack makes the goroutine's stack at once as large as most requests need. It
// would get there by doubling, from request to request, as HTTP/2 has a new
// goroutine for each; copying ever more frames is some eight per cent of a write.
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

func (s *Server) recovered(w *response, r *request, p any) {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.panicked("request", p, r.about()...)
	if w.code != 0 {
		r.aborted = true
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	s.fail(w, r, meta.Internal(errors.New("the server failed on this request")))
}

// panicked logs and counts a panic, for the deferred function that recovered it.
// Where it happened is a name of ours or of a controller.
func (s *Server) panicked(where string, p any, about ...any) {
	s.tellPanic(where, p, debug.Stack(), about...)
}

func (s *Server) tellPanic(where string, p any, stack []byte, about ...any) {
	s.metrics.panics.WithLabelValues(where).Inc()
	s.failures.report("panic in "+where, panickedIn(stack), "recovered from a panic", append([]any{"in", where, "panic", p, "stack", string(stack)}, about...)...)
}
