package servertest

import (
	"context"
	"net/http"
	"time"

	"orch.io/controlplane/server"
)

// Crash ends the server at once, as if its process were killed: connections are cut, what
// nobody was told of may be lost, and what was acknowledged is kept for Restart. Until
// then connections are refused, and Objects fails.
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

// Restart starts the server again, in order if it has not crashed: requests under way
// finish, and watches end. It has all objects, revisions and history, and its configuration
// is made anew by what New was given. Clients with the same Transport, URL or kubeconfig go
// on, and so do users and faults. Objects is another one afterwards.
//
// A release of the program takes the place of what New was given: so a test upgrades a
// server and rolls it back. A Storage of one's own is opened by each release anew.
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

// Frozen returns an effect for Rule.With by which reads are stale: they are answered, and
// watches served, by a replica that has all that is there now and learns of nothing
// that comes. What asks it for a newer resourceVersion is 504, as of a real one that lags.
// Writes are carried out as ever. Fault.Stop ends its watches.
func (s *Server) Frozen() func(http.Handler) http.Handler {
	s.t.Helper()
	s.needsStore(s.t, "frozen")
	_, replica := s.build(s.store.Fork(), s.front.authenticator())
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := replica.Shutdown(ctx); err != nil {
			s.t.Errorf("shutting a replica down: %v", err)
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
