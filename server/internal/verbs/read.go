package verbs

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/watchstream"
)

// get serves GET on an item or a subresource.
func (h *Handler) get(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	version := r.Query.Get("resourceVersion")
	rev, err := objects.ParseRevision(version)
	if err != nil {
		return err
	}
	if err := h.o.Objects.AtLeast(ctx, version, rev); err != nil {
		return err
	}
	entry, err := h.o.Objects.Entry(r.Version.Type, r.Key())
	if err != nil {
		return err
	}
	if entry == nil {
		return meta.NotFound(r.Version.Resource().GroupResource(), r.Name)
	}
	return h.o.Encoder.SendEntry(ctx, w, r, http.StatusOK, entry)
}

// list serves GET on a collection.
func (h *Handler) list(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	o, err := h.listOptions(r, false)
	if err != nil {
		return err
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, objects.ErrListTimeout)
		defer cancel()
	}
	h.estimateSeats(r, o)
	if err := r.Usage.AcquireSeat(ctx); err != nil {
		return err
	}
	page, err := h.o.Objects.List(ctx, r.Version, &o.Selection)
	if err != nil {
		return err
	}
	if !h.o.Features.Enabled(features.RemainingItemCount) {
		page.Remaining = -1
	}
	if err := r.Usage.AcquireBuilder(ctx); err != nil {
		return err
	}
	return h.o.Encoder.SendList(ctx, w, r, page)
}

// estimateSeats sets the number of objects that the request will read, which determines its seats.
func (h *Handler) estimateSeats(r *exchange.Request, o *listOptions) {
	n := h.o.Hub.Cache(r.Version.GroupResource()).Len()
	if o.Limit > 0 && o.Labels.Empty() && o.Fields.Empty() {
		n = int(min(o.Limit, int64(n)))
	}
	r.Usage.SetObjects(n)
}

// watch serves a watch of a collection.
func (h *Handler) watch(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	o, err := h.listOptions(r, true)
	if err != nil {
		return err
	}
	if name, _ := o.Fields.Value("metadata.name"); r.Name != "" && !o.Fields.Empty() && name != r.Name {
		return meta.BadRequest("the field selector does not select the object on the path")
	}
	if o.Revision == 0 || o.InitialEvents {
		if err := h.o.Objects.AtLeast(ctx, o.Version, o.Revision); err != nil {
			return err
		}
		h.estimateSeats(r, o)
	}
	if err := r.Usage.AcquireSeat(r.HTTP.Context()); err != nil {
		return err
	}
	return h.o.Watches.Serve(w, r, (*watchstream.Watch)(o))
}
