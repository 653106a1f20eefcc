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
		Names: s.names, Authorizer: b.Authorizer, Audit: b.Audit, Capacity: s.capacity, Objects: s.objects, Log: s.log, Errors: s.errors,
		RequestTime: b.limits.RequestTime, Types: s.catalog.Types, Table: s.remoteTable,
		Metrics: s.metrics,
	})
	encoder := &views.Encoder{Names: s.names}
	s.verbs = verbs.New(verbs.Options{
		Names: s.names, Rules: b.rules(), Features: b.features, Objects: s.objects, Hub: s.hub, Types: s.catalog.Types, Client: s.client, Encoder: encoder,
		Limits: verbs.Limits{Body: b.limits.Body, Depth: b.limits.Depth, Entries: b.limits.Entries, PatchOps: b.limits.PatchOps, CollectionPage: b.limits.CollectionPage},
		Watches: watchstream.New(watchstream.Options{
			Encoder: encoder, Objects: s.objects, Hub: s.hub, Types: s.catalog.Types, Lifetime: &s.lifetime, Log: s.log, Time: cmp.Or(b.limits.WatchTime, 30*time.Minute),
			Metrics: s.metrics,
		}),
		Allow: s.door.Allow, Connect: s.connect,
		Metrics: s.metrics,
	})
}
