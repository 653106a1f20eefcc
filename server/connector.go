package server

import (
	"context"
	"net/http"
	"net/url"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/proxy"
)

// Connector connects a server to the targets of sub-resources such as log, exec and proxy: agents of
// nodes, pods and services.
type Connector interface {
	// Connect returns the scheme and host of a target and the transport to it. The transport must
	// support upgrades: the body of a response with code 101 is an io.ReadWriteCloser. The server does
	// not pass the credentials of its callers on; the transport has its own. If Connect or the
	// transport returns a *meta.Status as its error, that is the response to the caller.
	Connect(ctx context.Context, to *registry.Target) (*url.URL, http.RoundTripper, error)
}

// newProxy returns the part that passes requests on to other servers.
func (s *Server) newProxy(b *Builder) *proxy.Proxy {
	p := &proxy.Proxy{
		Objects: s.objects, Aggregator: s.aggregator, Metrics: s.metrics, Log: b.Logger, FlowHeaders: s.capacity.Headers(),
		Allow: s.door.Allow, Lifetime: &s.lifetime,
		Admit: func(ctx context.Context, r *exchange.Request, options *meta.Object) (*registry.Call, error) {
			return s.verbs.AdmitConnect(ctx, r, options)
		},
		StripCredentials: func(h http.Header) {
			s.authenticator.Strip(h)
			exchange.DropWebSocketTokens(h, s.responder.Names)
		},
	}
	if b.Connector != nil {
		p.Dial = b.Connector.Connect
	}
	return p
}
