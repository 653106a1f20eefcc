package server

import (
	"context"
	"net/http"
	"strings"

	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/health"
)

// route dispatches the request by its path.
func (s *Server) route(ctx context.Context, w *exchange.Response, r *exchange.Request) {
	serve := s.verbs.Serve
	switch {
	case r.Remote != nil:
		serve = s.proxy.Forward
	case !r.IsResource:
		s.serveOther(w, r)
		return
	}
	if err := serve(ctx, w, r); err != nil {
		w.Fail(err)
	}
}

// serveOther handles requests to paths that are not resources: health, discovery and Handlers.
func (s *Server) serveOther(w *exchange.Response, r *exchange.Request) {
	r.Routed = r.HTTP.Method == http.MethodGet || r.HTTP.Method == http.MethodHead
	if err := r.Usage.AcquireSeat(r.HTTP.Context()); err != nil {
		w.Fail(err)
		return
	}
	path := strings.TrimSuffix(r.Path, "/")
	for _, serve := range []func(*exchange.Response, *exchange.Request, string) bool{s.serveHealth, s.discovery.Serve, s.serveExtra} {
		if serve(w, r, path) {
			return
		}
	}
	http.NotFound(w, r.HTTP)
}

// serveExtra handles a request by the handler with its exact path, or else by the handler with the
// longest matching prefix. It returns false if there is none. path is r.Path without a trailing
// slash.
func (s *Server) serveExtra(w *exchange.Response, r *exchange.Request, path string) bool {
	if h, ok := s.handlers[path]; ok {
		h.ServeHTTP(w, r.HTTP)
		return true
	}
	longest := ""
	for prefix := range s.handlers {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(r.Path, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		return false
	}
	s.handlers[longest].ServeHTTP(w, r.HTTP)
	return true
}

// serveHealth handles /livez, /readyz, /healthz, single checks below them, and /metrics/slis. It
// returns false for other paths.
func (s *Server) serveHealth(w *exchange.Response, r *exchange.Request, path string) bool {
	if !health.Serves(path) {
		return false
	}
	if r.HTTP.Method != http.MethodGet && r.HTTP.Method != http.MethodHead {
		w.Fail(exchange.MethodNotAllowed())
		return true
	}
	s.health.ServeHTTP(w, r.HTTP)
	return true
}
