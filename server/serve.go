package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
	"orch.io/controlplane/server/internal/background"
	"orch.io/controlplane/server/openapi"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// Server is a running API server. It is an http.Handler and may be mounted on
// any mux, also below a prefix with http.StripPrefix.
type Server struct {
	names         names.Profile
	backend       storage.Backend
	catalog       registry.Catalog
	hub           *watch.Hub
	definitions   definitions
	limits        Limits
	log           *slog.Logger
	authenticator auth.Authenticator
	authorizer    auth.Authorizer
	admission     admission.Chain
	handlers      map[string]Handler
	audit         auth.Auditor
	metrics       *metrics
	client        *client
	loops         []Loop
	checks        map[string]func(context.Context) error
	version       string
	started       time.Time
	livezGrace    time.Duration

	inFlight chan struct{} // a place for each request but watches
	watches  atomic.Int64
	notReady atomic.Bool
	openapi  openapi.Cache

	encodings sync.Pool // of *[]byte, room to encode in

	life     context.Context // ends with the server; watches and loops end with it
	end      context.CancelFunc
	requests sync.WaitGroup
	loopsRun sync.WaitGroup
	begun    chan struct{} // closed when Run has begun; runners stays as it is then
	mu       sync.Mutex    // guards the rest, so that nothing is added to the groups after closing
	closing  bool
	runners  []*background.Runner
}

// Handler serves a path that is no resource. The caller passed authentication
// and authorization; auth.UserFrom(r.Context()) is who it is.
type Handler = http.Handler

// ServeHTTP answers one request: who, whether, what.
func (s *Server) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	if !s.enter() {
		s.fail(w, parse(h), meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "the server is shutting down"))
		return
	}
	defer s.requests.Done()
	r := parse(h)
	r.notes = &notes{}
	out := &response{ResponseWriter: w}
	r.patience = newPatience(w, s.limits.RequestTime)
	r.patience.renew()
	defer r.patience.release()
	done := s.observe(r, out)
	defer done()
	defer s.endRecord(out, r)
	defer func() {
		if p := recover(); p != nil {
			r.record.outcome.Panicked = true
			s.recovered(out, r, p)
		}
	}()
	if err := s.vet(out, r); err != nil {
		s.fail(out, r, err)
		return
	}
	s.route(out, r)
}

// vet finds out who calls, as whom, and whether that is allowed.
func (s *Server) vet(w *response, r *request) error {
	err := s.identify(r)
	s.beginRecord(w, r)
	if err != nil {
		return err
	}
	if err := s.impersonate(r); err != nil {
		return err
	}
	return s.authorize(r.http.Context(), r)
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
	s.log.Error("request panicked", "method", r.http.Method, "path", r.path, "panic", p, "stack", string(debug.Stack()))
	if w.code != 0 {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	s.fail(w, r, meta.Internal(errors.New("the server failed on this request")))
}

// identify sets the caller. Whom no authenticator knows is 401; who may be
// anonymous is for auth.AnonymousAccess to say.
func (s *Server) identify(r *request) error {
	user, err := s.authenticator.Authenticate(r.http)
	if err != nil || user == nil {
		s.log.Debug("authentication failed", "path", r.path, "error", err)
		return unauthorized()
	}
	r.user = user
	r.http = r.http.WithContext(auth.WithUser(r.http.Context(), user))
	return nil
}

func unauthorized() *meta.Status {
	return meta.Failure(http.StatusUnauthorized, meta.ReasonUnauthorized, "Unauthorized")
}

// authorize asks whether the caller may do what the request asks for.
func (s *Server) authorize(ctx context.Context, r *request) error {
	a := r.action()
	decision, reason, err := s.authorizer.Authorize(ctx, a)
	r.record.decided(s.names, decision == auth.Allow, reason)
	return s.judge(a, decision, reason, err)
}

// allow turns anything but Allow into 403.
func (s *Server) allow(ctx context.Context, a auth.Action) error {
	decision, reason, err := s.authorizer.Authorize(ctx, a)
	return s.judge(a, decision, reason, err)
}

func (s *Server) judge(a auth.Action, decision auth.Decision, reason string, err error) error {
	if decision == auth.Allow {
		return nil
	}
	if err != nil {
		s.log.Warn("authorization failed", "user", a.User.Name, "error", err)
	}
	return forbidden(a, reason)
}

// forbidden is the 403 that clients show: who cannot do what, and where.
func forbidden(a auth.Action, reason string) *meta.Status {
	if a.Resource == "" {
		why := fmt.Sprintf("User %q cannot %s path %q", a.User.Name, a.Verb, a.Path)
		return meta.Forbidden(meta.GroupResource{}, "", join(why, reason))
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	scope := "at the cluster scope"
	if a.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	why := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", a.User.Name, a.Verb, resource, a.Group, scope)
	return meta.Forbidden(meta.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, join(why, reason))
}

func join(why, reason string) string {
	if reason == "" {
		return why
	}
	return why + ": " + reason
}

// route hands the request to what its path names.
func (s *Server) route(w *response, r *request) {
	if !r.isResource {
		s.serveOther(w, r)
		return
	}
	if r.verb == "watch" {
		s.serveWatch(w, r)
		return
	}
	select {
	case s.inFlight <- struct{}{}:
		defer func() { <-s.inFlight }()
	default:
		s.fail(w, r, tooMany("too many requests at a time"))
		return
	}
	ctx, cancel := context.WithTimeout(r.http.Context(), s.limits.RequestTime)
	defer cancel()
	if err := s.serveResource(ctx, w, r); err != nil {
		s.fail(w, r, err)
	}
}

func tooMany(why string) *meta.Status {
	st := meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "%s, please try again later", why)
	st.Details = &meta.Details{RetryAfterSeconds: 1}
	return st
}

// errNoPath says that a path is none of the API's: it is answered with a plain
// 404, as any other path that is not there.
var errNoPath error = meta.Failure(http.StatusNotFound, meta.ReasonNotFound, "404 page not found")

// hasBuiltin reports whether a registered kind has the group; groups that only
// definitions made are not there beyond what these define.
func (s *Server) hasBuiltin(group string) bool {
	return slices.ContainsFunc(s.types().Types(), func(t *registry.Type) bool { return t.Group == group && t.Edition == "" })
}

// resolve finds the version and sub-resource that the path names.
func (s *Server) resolve(r *request) error {
	r.version = s.types().Version(meta.Resource{Group: r.group, Version: r.apiVersion, Resource: r.resource})
	if r.version == nil {
		if !s.hasBuiltin(r.group) {
			return errNoPath
		}
		return meta.NoSuchResource()
	}
	if r.version.Namespaced != (r.namespace != "") && (r.name != "" || !r.version.Namespaced) && !r.isNamespace() {
		if r.version.Custom {
			return errNoPath
		}
		return meta.NoSuchResource()
	}
	if r.version.Virtual() && (r.name != "" || r.version.Namespaced && r.namespace == "") {
		return meta.NoSuchResource() // nothing is kept that could have a name
	}
	if r.isNamespace() {
		r.namespace = ""
	}
	if r.subresource == "" {
		return nil
	}
	if r.sub = r.version.Subresource(r.subresource); r.sub == nil {
		if r.version.Custom {
			return meta.NotFound(r.version.GroupResource(), r.name)
		}
		return meta.NoSuchResource()
	}
	return nil
}

// isNamespace reports whether the request is for Namespace objects, whose name
// stands where other paths have their namespace. There are none inside a
// namespace: a right in one must not reach another.
func (r *request) isNamespace() bool {
	return r.group == "" && r.resource == "namespaces" && r.namespace == r.name
}

// serveResource answers a request to a resource that is no watch.
func (s *Server) serveResource(ctx context.Context, w *response, r *request) error {
	if err := s.resolve(r); err != nil {
		return err
	}
	if r.version.Deprecated != "" {
		r.notes.warn(r.version.Deprecated)
		r.notes.annotate(s.names.Wire(names.Deprecated), "true")
	}
	if !allowed(r) {
		return methodNotAllowed()
	}
	if err := s.negotiate(r); err != nil {
		return err
	}
	switch r.verb {
	case "get":
		return s.get(ctx, w, r)
	case "list":
		return s.list(ctx, w, r)
	case "create":
		return s.create(ctx, w, r)
	case "update":
		return s.update(ctx, w, r)
	case "patch":
		return s.patch(ctx, w, r)
	case "delete":
		return s.delete(ctx, w, r)
	case "deletecollection":
		return s.deleteCollection(ctx, w, r)
	}
	return methodNotAllowed()
}

// allowed reports whether the resource, or sub-resource, has the verb there.
func allowed(r *request) bool {
	if r.http.Method == http.MethodHead {
		return false
	}
	if r.version.Namespaced && r.namespace == "" && r.verb != "list" {
		return false // the path across namespaces only reads
	}
	if r.sub != nil {
		return contains(r.sub.Verbs(), r.verb)
	}
	if r.verb == "create" && r.name != "" {
		return false
	}
	if r.name == "" && (r.verb == "update" || r.verb == "patch") {
		return false
	}
	return contains(r.version.Verbs(), r.verb)
}

func methodNotAllowed() *meta.Status {
	st := meta.Failure(http.StatusMethodNotAllowed, meta.ReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
	st.Details = &meta.Details{}
	return st
}

// serveOther answers paths that are no resources.
func (s *Server) serveOther(w *response, r *request) {
	path := strings.TrimSuffix(r.path, "/")
	for _, serve := range []func(*response, *request, string) bool{s.serveHealth, s.serveDiscovery, s.serveOpenAPI, s.serveExtra} {
		if serve(w, r, path) {
			return
		}
	}
	http.NotFound(w, r.http)
}

func (s *Server) serveExtra(w *response, r *request, path string) bool {
	if path == "/metrics" {
		s.metrics.handler.ServeHTTP(w, r.http)
		return true
	}
	if h, ok := s.handlers[path]; ok {
		h.ServeHTTP(w, r.http)
		return true
	}
	for prefix, h := range s.handlers {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(r.path, prefix) {
			h.ServeHTTP(w, r.http)
			return true
		}
	}
	return false
}
