package server

import (
	"maps"
	"net/http"
	"slices"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/inprocess"
)

// Transport returns a RoundTripper that calls the server in process, for use with any HTTP client.
// It needs no socket, and responses stream as they are written. The host in a request's URL is
// ignored. A request ends when its context ends.
func (s *Server) Transport() http.RoundTripper { return inprocess.Transport(s) }

// Conn returns an in-process connection to the server as the given user, for the typed clients of
// package client; its Transport can be used with any HTTP client. The server treats the user as
// authenticated, ignoring credentials in requests; authorization, flow control, admission and audit
// apply. If the user has no name, requests are refused with 401.
func (s *Server) Conn(user auth.User) client.Conn {
	user.Groups, user.Extra = slices.Clone(user.Groups), maps.Clone(user.Extra)
	who := auth.Union(auth.AuthenticatorFunc(func(*http.Request) (*auth.User, error) {
		if user.Name == "" {
			return nil, nil
		}
		u := user
		return &u, nil
	}))
	return client.Conn{Names: s.names, Transport: inprocess.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, who)
	}))}
}
