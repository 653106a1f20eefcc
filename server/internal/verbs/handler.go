// Package verbs serves requests to resources: it reads, writes and watches objects of the
// registered kinds.
package verbs

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/proxy"
	"orch.io/controlplane/server/internal/requestmetrics"
	"orch.io/controlplane/server/internal/views"
	"orch.io/controlplane/server/internal/watchstream"
)

// Options configure a Handler. All fields must be set.
type Options struct {
	Names    names.Profile
	Rules    compat.Rules
	Features *features.Set
	Limits   Limits
	Objects  *objects.Store
	Hub      *objectcache.Set
	Types    func() *resource.State
	Client   *objects.Client // for the functions of kinds
	Encoder  *views.Encoder
	Watches  *watchstream.Streamer
	Proxy    *proxy.Proxy
	Metrics  *requestmetrics.Metrics

	// Allow returns a 403 if the user may not use another verb on the resource of the request.
	Allow func(ctx context.Context, r *exchange.Request, verb string) error
}

// Limits bound requests. They are the fields of server.Limits with the same names.
type Limits struct {
	Body           int64
	Depth          int
	Entries        int
	PatchOps       int
	CollectionPage int
}

// Handler serves requests to resources. It is safe for concurrent use.
type Handler struct{ o Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{o} }

// Serve serves a request to a resource of this server. It returns when ctx ends, except for a watch, which may take
// longer. A request takes a seat when it has everything that it needs. If Serve returns an error, it has sent no
// response, and the caller must send the error.
func (h *Handler) Serve(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	if err := h.prepare(r); err != nil {
		return err
	}
	switch {
	case r.Verb == "watch":
		return h.watch(ctx, w, r)
	case r.Sub != nil && r.Sub.Connect != nil:
		return h.o.Proxy.Connect(ctx, w, r, h.admitConnect)
	case r.Version.Read != nil:
		return h.readVirtual(ctx, w, r)
	}
	if r.Verb != "get" && r.Verb != "list" { // admission may call webhooks
		ctx = metrics.WithOutside(ctx, &r.Usage.Outside)
	}
	switch r.Verb {
	case "get":
		if err := r.Usage.AcquireSeat(ctx); err != nil {
			return err
		}
		return h.get(ctx, w, r)
	case "list":
		return h.list(ctx, w, r)
	case "create":
		return h.create(ctx, w, r)
	case "update":
		return h.update(ctx, w, r)
	case "patch":
		return h.patch(ctx, w, r)
	case "delete":
		return h.delete(ctx, w, r)
	case "deletecollection":
		return h.deleteCollection(ctx, w, r)
	}
	return exchange.MethodNotAllowed()
}

// prepare resolves the path of the request, checks that its resource has the verb, and negotiates
// the media type of the response.
func (h *Handler) prepare(r *exchange.Request) error {
	if err := h.resolve(r); err != nil {
		return err
	}
	if r.Version.Deprecated != "" {
		r.Notes.Warn(r.Version.Deprecated)
		r.Notes.Annotate(h.o.Names.Wire(wellknown.Deprecated), "true")
		if r.Version.Removed != "" {
			r.Notes.Annotate(h.o.Names.Wire(wellknown.RemovedRelease), r.Version.Removed)
		}
	}
	if !allowed(r) {
		return refuseMethod(r)
	}
	r.Routed = true
	if r.Sub != nil && r.Sub.Connect != nil {
		return nil // the target chooses the media type of the response
	}
	return h.negotiate(r)
}

// resolve sets the version and the subresource that the path names.
func (h *Handler) resolve(r *exchange.Request) error {
	types := h.o.Types()
	if r.Version = types.Version(meta.GroupVersionResource{Group: r.Group, Version: r.APIVersion, Resource: r.Resource}); r.Version == nil {
		if !types.Registered(r.Group) {
			return exchange.ErrNoPath
		}
		return meta.NoSuchResource()
	}
	if r.Version.Namespaced != (r.Namespace != "") && (r.Name != "" || !r.Version.Namespaced) && !isNamespace(r) {
		if r.Version.DelegatedPaths {
			return exchange.ErrNoPath
		}
		return meta.NoSuchResource()
	}
	if r.HasExtraSegments || r.Version.Act != nil && (r.Name != "" || r.Version.Namespaced && r.Namespace == "") {
		return meta.NoSuchResource() // virtual objects are not stored and have no names
	}
	if isNamespace(r) {
		r.Namespace = ""
	}
	if r.Sub = r.Version.Subresource(r.Subresource); r.Sub == nil && r.Subresource != "" {
		if r.Version.DelegatedPaths {
			return meta.NotFound(r.Version.Resource().GroupResource(), r.Name)
		}
		return meta.NoSuchResource()
	}
	if r.Rest != "" && !r.Proxied() || r.Sub == nil && r.Version.DiscoveryKind != "" {
		return meta.NoSuchResource()
	}
	return nil
}

// isNamespace reports whether the request is for Namespace objects. Their paths have their name in place of a
// namespace. A path inside a namespace has no Namespace objects, because a right in one namespace must not apply to
// another.
func isNamespace(r *exchange.Request) bool {
	return r.Group == "" && r.Resource == "namespaces" && !r.InNamespace
}

// allowed reports whether the resource or subresource has the verb at the path.
func allowed(r *exchange.Request) bool {
	if r.Proxied() {
		return proxy.Forwards(r.HTTP.Method)
	}
	if r.HTTP.Method == http.MethodHead || r.Verb == "watch" && r.HTTP.Method != http.MethodGet {
		return false
	}
	if r.Version.Namespaced && r.Namespace == "" && r.Verb != "list" && r.Verb != "watch" {
		return false // a path across namespaces is for reads only
	}
	if r.Sub != nil {
		return slices.Contains(r.Sub.Verbs(), r.Verb)
	}
	if r.Verb == "create" && r.Name != "" {
		return false
	}
	if r.Name == "" && (r.Verb == "update" || r.Verb == "patch") {
		return false
	}
	return slices.Contains(r.Version.Verbs(), r.Verb)
}

// refuseMethod returns the error for a verb that a resource does not have.
func refuseMethod(r *exchange.Request) error {
	if !r.Version.DelegatedPaths {
		return exchange.MethodNotAllowed()
	}
	if r.Version.Namespaced && r.Namespace == "" {
		return exchange.ErrNoPath
	}
	st := exchange.MethodNotAllowed()
	st.Details = &meta.StatusDetails{Group: r.Group, Kind: r.Resource}
	return st
}

// negotiate sets the media type of the response.
func (h *Handler) negotiate(r *exchange.Request) (err error) {
	list := r.Verb == "list" || r.Verb == "deletecollection" && h.o.Rules.Has(compat.ListsDeleted)
	offer := media.Supported{Views: true, List: list, Watch: r.Verb == "watch", Protobuf: r.BodyVersion().Proto() != nil}
	offer.Metadata = r.Version.Act == nil && r.Sub == nil
	offer.NoTable = r.Version.Act != nil || r.Sub != nil && r.Sub.Act != nil // objects that are not stored have no rows
	r.Media, err = media.Negotiate(r.HTTP.Header.Get("Accept"), h.o.Names, offer)
	var st *meta.Status
	if errors.As(err, &st) && r.Version.DelegatedPaths {
		st.Details = nil // custom kinds do not distinguish formats and views
	}
	r.Media.Pretty = r.Media.Pretty || r.Pretty()
	return err
}
