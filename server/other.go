package server

import (
	"net/http"

	"orch.io/controlplane/server/internal/health"
)

// serveHealth answers /livez, /readyz, /healthz, single checks below them, and /metrics/slis.
func (s *Server) serveHealth(w *response, r *request, path string) bool {
	if !health.Serves(path) {
		return false
	}
	if r.http.Method != http.MethodGet && r.http.Method != http.MethodHead {
		s.fail(w, r, methodNotAllowed())
		return true
	}
	s.health.ServeHTTP(w, r.http)
	return true
}
