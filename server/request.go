package server

import (
	"context"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/exchange"
)

// anyVersion reports whether a request reads its objects at any revision that the server has.
func (s *Server) anyVersion(r *exchange.Request) bool {
	return (r.Verb == "get" || r.Verb == "list") && r.Query.Get("resourceVersion") == "0" &&
		r.Remote == nil && !r.Connects && s.versionOf(r) != nil
}

// versionOf returns the version that the path names, nil if the server has no such resource.
func (s *Server) versionOf(r *exchange.Request) *resource.Version {
	return s.types().Version(meta.Resource{Group: r.Group, Version: r.APIVersion, Resource: r.Resource})
}

// catchUp waits until the caches show every commit that was acknowledged before the request
// came, by any server over the store. What decides about the request (rights, definitions,
// admission, the server that serves it) then is no older than what it reads or writes. A read
// at any revision is decided by the state that it reads. Paths of no resource wait for a moment,
// and health checks, which report on the store, not at all. If the request turns out to connect,
// or not to, it gets another slot; full is the 429 if there is none.
func (s *Server) catchUp(ctx context.Context, r *exchange.Request) (full, err error) {
	switch {
	case s.anyVersion(r), healthEndpoint(r.Path):
		return nil, nil
	case r.IsResource:
		err = s.catchUpWithin(ctx, r)
	default:
		ctx, cancel := context.WithTimeout(ctx, briefly)
		defer cancel()
		_ = s.catchUpWithin(ctx, r)
	}
	if kind := slotOf(r); err == nil && kind != r.Usage.Kind() {
		full = r.Usage.AcquireSlot(kind)
	}
	return full, err
}

func (s *Server) catchUpWithin(ctx context.Context, r *exchange.Request) error {
	err := s.objects.CatchUp(ctx)
	s.locate(r)
	return err
}

// briefly is how long a request for what is no resource, such as discovery, waits for the
// commits of other servers. Then it is answered without them, because clients begin with it.
const briefly = 2 * time.Second

// slotOf returns the kind of slot that the request takes.
func slotOf(r *exchange.Request) capacity.Kind {
	switch {
	case r.Verb == "watch":
		return capacity.Watch
	case r.Connects:
		return capacity.Connection
	}
	return capacity.Request
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
