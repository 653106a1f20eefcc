package server

import (
	"cmp"
	"net/http"
	"time"

	"orch.io/controlplane/server/internal/door"
	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/proxy"
	"orch.io/controlplane/server/internal/verbs"
	"orch.io/controlplane/server/internal/views"
	"orch.io/controlplane/server/internal/watchstream"
)

// openRequests creates the parts that handle requests to resources.
func (s *Server) openRequests(b *Builder) {
	s.door = door.New(door.Options{
		Names: s.names, Authorizer: b.Authorizer, Audit: b.Audit, Capacity: s.capacity, Objects: s.objects, Log: s.log, Errors: s.errors,
		RequestTime: b.limits.RequestTime, Types: s.catalog.Types, Aggregator: s.aggregator,
		Metrics: s.metrics,
	})
	s.proxy = &proxy.Proxy{
		Objects: s.objects, Aggregator: s.aggregator, Metrics: s.metrics, Log: s.log, Lifetime: &s.lifetime, Allow: s.door.Allow, FlowHeaders: s.capacity.Headers(),
		StripCredentials: func(h http.Header) {
			s.authenticator.Strip(h)
			exchange.DropWebSocketTokens(h, s.names)
		},
	}
	if b.Connector != nil {
		s.proxy.Dial = b.Connector.Connect
	}
	encoder := &views.Encoder{Names: s.names}
	s.verbs = verbs.New(verbs.Options{
		Names: s.names, Rules: b.rules(), Features: b.features, Objects: s.objects, Hub: s.hub, Types: s.catalog.Types, Client: s.client, Encoder: encoder,
		Limits: verbs.Limits{Body: b.limits.Body, Depth: b.limits.Depth, Entries: b.limits.Entries, PatchOps: b.limits.PatchOps, CollectionPage: b.limits.CollectionPage},
		Watches: watchstream.New(watchstream.Options{
			Encoder: encoder, Objects: s.objects, Hub: s.hub, Types: s.catalog.Types, Lifetime: &s.lifetime, Log: s.log, Time: cmp.Or(b.limits.WatchTime, 30*time.Minute),
			Metrics: s.metrics,
		}),
		Allow: s.door.Allow, Proxy: s.proxy,
		Metrics: s.metrics,
	})
}

// auditWrites returns the function that audits the writes of the built-in controllers, or nil if
// the server has no audit.
func (b *Builder) auditWrites(errors *errorlog.Log) func(*objects.Write) (objects.Notes, func(objects.Audited)) {
	if b.Audit == nil {
		return nil
	}
	return (&door.WriteAuditor{Names: b.Names, Audit: b.Audit, Errors: errors}).Begin
}
