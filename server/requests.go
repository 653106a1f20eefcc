package server

import (
	"cmp"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/door"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/verbs"
	"orch.io/controlplane/server/internal/views"
	"orch.io/controlplane/server/internal/watchstream"
)

// openRequests makes the parts that requests to resources pass.
func (s *Server) openRequests(b *Builder) {
	s.door = door.New(door.Options{
		Names: s.names, Authorizer: b.Authorizer, Audit: b.Audit, Capacity: s.capacity, Objects: s.objects, Log: s.log, Errors: s.errors,
		RequestTime: s.limits.RequestTime, Locate: s.locate, AnyRevision: s.anyRevision,
		Authenticated: s.metrics.authenticated, Authorized: s.metrics.authorized,
	})
	encoder := &views.Encoder{Names: s.names}
	s.verbs = verbs.New(verbs.Options{
		Names: s.names, Rules: s.rules, Features: s.features, Objects: s.objects, Hub: s.hub, Types: s.catalog.Types, Client: s.client, Encoder: encoder,
		Limits: verbs.Limits{Body: s.limits.Body, Depth: s.limits.Depth, Entries: s.limits.Entries, PatchOps: s.limits.PatchOps, CollectionPage: s.limits.CollectionPage},
		Watches: watchstream.New(watchstream.Options{
			Encoder: encoder, Objects: s.objects, Hub: s.hub, Types: s.catalog.Types, Lifetime: &s.lifetime, Log: s.log, Time: cmp.Or(s.limits.WatchTime, 30*time.Minute),
			Running: s.runs, Counts: func(v *resource.Version) watchstream.Counts { return *s.metrics.stream(s, v) },
			Started: func(r *exchange.Request, took time.Duration) {
				s.metrics.of(s, r, started, 0).size.Observe(took.Seconds())
			},
		}),
		Allow: s.door.Allow, Connect: s.connect,
		Received: func(r *exchange.Request, size int) { s.metrics.of(s, r, received, 0).size.Observe(float64(size)) },
	})
}

// anyRevision reports whether a request reads its objects at any revision that the server has.
func (s *Server) anyRevision(r *exchange.Request) bool {
	return (r.Verb == "get" || r.Verb == "list") && r.Query.Get("resourceVersion") == "0" &&
		r.Remote == nil && !r.Connects && s.versionOf(r) != nil
}

// versionOf returns the version that the path names, nil if the server has no such resource.
func (s *Server) versionOf(r *exchange.Request) *resource.Version {
	return s.catalog.Types().Version(meta.Resource{Group: r.Group, Version: r.APIVersion, Resource: r.Resource})
}

// locate finds out which server the request goes on to, if any, and how long it lasts.
func (s *Server) locate(r *exchange.Request) {
	r.Remote = s.remoteOf(r)
	r.Connects = s.connects(r)
	r.LongRunning = r.Verb == "watch" || r.Connects
}

func (s *Server) connects(r *exchange.Request) bool {
	if r.Remote != nil {
		return r.Upgrades() || slices.Contains(longSubresources, r.Subresource)
	}
	if r.Subresource == "" {
		return false
	}
	v := s.versionOf(r)
	if v == nil {
		return false
	}
	sub := v.Subresource(r.Subresource)
	return sub != nil && sub.Connect != nil
}
