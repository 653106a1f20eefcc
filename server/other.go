package server

import (
	"net/http"

	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/health"
)

// serveHealth answers /livez, /readyz, /healthz, single checks below them, and /metrics/slis.
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
