package servertest

import (
	"context"
	"net/http"
	"time"

	"orch.io/controlplane/server"
)

// Crash stops the server as if its process were killed: it cuts all connections. Acknowledged writes are kept
// for Restart; writes in flight may be lost. Until Restart connections are refused, and the client of Objects
// returns errors.
func (s *Server) Crash() {
	s.t.Helper()
	s.needsStore(s.t, "crashed")
	s.front.cutOff()
	last := s.store
	s.store = s.kept.crash()
	s.closeConnections()
	s.stop()
	if err := last.Close(); err != nil {
		s.t.Errorf("closing the store: %v", err)
	}
}

// Restart stops the server gracefully, if it has not crashed, and starts it again. At a graceful stop, requests in flight
// complete and watches end. The new server has all objects, revisions and history, and is configured
// again by the functions given to New. Clients of the same Transport, URL or kubeconfig continue to work, and
// users and faults stay. Objects returns a new client.
//
// If release is given, it replaces the functions given to New, so that a test can upgrade a server and roll
// it back. A Storage that is set in a configuration is opened anew by each release.
func (s *Server) Restart(release ...func(*server.Builder)) {
	s.t.Helper()
	if len(release) > 0 {
		s.configure = release
	} else {
		s.needsStore(s.t, "restarted")
	}
	s.front.put(nil, nil)
	s.stop()
	s.closeConnections()
	s.run()
}

func (s *Server) closeConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plain != nil {
		s.plain.CloseClientConnections()
	}
	if s.secure != nil {
		s.secure.CloseClientConnections()
	}
}

// StaleReads returns an effect for Rule.With that makes reads stale: a replica serves gets, lists and watches
// from the present state of the store, and sees no later changes. It answers 504 to requests for a newer
// resourceVersion, like a replica that lags. Writes are not affected. Fault.Stop cuts its watches.
func (s *Server) StaleReads() func(http.Handler) http.Handler {
	s.t.Helper()
	s.needsStore(s.t, "frozen")
	_, replica := s.build(s.store.Fork(), s.front.authenticator())
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := replica.Shutdown(ctx); err != nil {
			s.t.Errorf("shutting down a replica: %v", err)
		}
	})
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet || r.Method == http.MethodHead {
				replica.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
