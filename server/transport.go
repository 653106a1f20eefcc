package server

import (
	"maps"
	"net/http"
	"slices"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/inprocess"
)

// Transport returns an in-process way to the server for any HTTP client: no
// socket, no encoding of HTTP, answers stream as they are written. The host of
// a request's URL does not matter. Requests made through it carry the server's
// context rules: when their context ends, so does the request.
func (s *Server) Transport() http.RoundTripper { return inprocess.Transport(s) }

// Conn returns an in-process way to the server as a user whom the program names, for the
// typed clients of package client; its Transport serves any HTTP client. The user is as if
// an authenticator had found him, whatever credentials requests carry: access control, flow
// control, admission and audit see him. One without a name is refused with 401.
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
