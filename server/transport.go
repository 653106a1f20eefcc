package server

import (
	"net/http"

	"orch.io/controlplane/internal/inprocess"
)

// Transport returns an in-process way to the server for any HTTP client: no
// socket, no encoding of HTTP, answers stream as they are written. The host of
// a request's URL does not matter. Requests made through it carry the server's
// context rules: when their context ends, so does the request.
func (s *Server) Transport() http.RoundTripper { return inprocess.Transport(s) }
