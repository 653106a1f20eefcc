package server

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
)

// get answers GET on an item or a sub-resource.
func (s *Server) get(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	version := r.Query.Get("resourceVersion")
	rev, err := objects.ParseRevision(version)
	if err != nil {
		return err
	}
	if err := s.objects.AtLeast(ctx, version, rev); err != nil {
		return err
	}
	entry, err := s.objects.Entry(r.Version.Type, r.Key())
	if err != nil {
		return err
	}
	if entry == nil {
		return meta.NotFound(r.Version.Resource().GroupResource(), r.Name)
	}
	return s.respondEntry(ctx, w, r, http.StatusOK, entry)
}

// list answers GET on a collection.
func (s *Server) list(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	o, err := s.listOptions(r, false)
	if err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, objects.ErrListTimeout)
		defer cancel()
	}
	s.estimateSeats(r, o)
	if err := r.Usage.AcquireSeat(ctx); err != nil {
		return err
	}
	page, err := s.objects.List(ctx, r.Version, &o.Selection)
	if err != nil {
		return err
	}
	if !s.features.Enabled(features.RemainingItemCount) {
		page.Remaining = -1
	}
	if err := r.Usage.AcquireBuilder(ctx); err != nil {
		return err
	}
	return s.respondList(ctx, w, r, page)
}

// estimateSeats makes a request that looks at many objects take more seats.
func (s *Server) estimateSeats(r *exchange.Request, o *listOptions) {
	n := s.hub.Cache(r.Version.GroupResource()).Len()
	if o.Limit > 0 && o.Labels.Empty() && o.Fields.Empty() {
		n = int(min(o.Limit, int64(n)))
	}
	r.Usage.SetObjects(n)
}
