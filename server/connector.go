package server

import (
	"context"
	"net/http"
	"net/url"

	"orch.io/controlplane/registry"
)

// Connector connects a server to the targets of subresources such as log, exec and proxy: agents of
// nodes, pods and services.
type Connector interface {
	// Connect returns the scheme and host of a target and the transport to it. The transport must
	// support upgrades: the body of a response with code 101 is an io.ReadWriteCloser. The server does
	// not pass the credentials of its callers on; the transport has its own. If Connect or the
	// transport returns a *meta.Status as its error, that is the response to the caller.
	Connect(ctx context.Context, to *registry.Target) (*url.URL, http.RoundTripper, error)
}
