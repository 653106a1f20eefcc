package server

import (
	"cmp"
	"time"

	"orch.io/controlplane/server/internal/door"
	"orch.io/controlplane/server/internal/verbs"
	"orch.io/controlplane/server/internal/views"
	"orch.io/controlplane/server/internal/watchstream"
)

// openRequests makes the parts that requests to resources pass.
func (s *Server) openRequests(b *Builder) {
	s.door = door.New(door.Options{
		Names: s.responder.Names, Authorizer: b.Authorizer, Audit: b.Audit, Capacity: s.capacity, Objects: s.objects, Log: b.Logger, Errors: s.responder.Errors,
		RequestTime: s.limits.RequestTime, Types: s.catalog.Types, Table: s.aggregator.Table,
		Metrics: s.metrics,
	})
	s.proxy = s.newProxy(b)
	encoder := &views.Encoder{Names: s.responder.Names}
	s.verbs = verbs.New(verbs.Options{
		Names: s.responder.Names, Rules: b.rules(), Features: b.features, Objects: s.objects, Hub: s.hub, Types: s.catalog.Types, Client: s.client, Encoder: encoder,
		Limits: verbs.Limits{Body: s.limits.Body, Depth: s.limits.Depth, Entries: s.limits.Entries, PatchOps: s.limits.PatchOps, CollectionPage: s.limits.CollectionPage},
		Watches: watchstream.New(watchstream.Options{
			Encoder: encoder, Objects: s.objects, Hub: s.hub, Types: s.catalog.Types, Lifetime: &s.lifetime, Log: b.Logger, Time: cmp.Or(s.limits.WatchTime, 30*time.Minute),
			Metrics: s.metrics,
		}),
		Allow: s.door.Allow, Connect: s.proxy.Connect,
		Metrics: s.metrics,
	})
}
