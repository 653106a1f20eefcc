package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
)

// route hands the request to what its path names.
func (s *Server) route(ctx context.Context, w *exchange.Response, r *exchange.Request) {
	serve := s.serveResource
	switch {
	case r.Remote != nil:
		serve = s.forward
	case !r.IsResource:
		s.serveOther(w, r)
		return
	case r.Verb == "watch":
		serve = s.serveWatch
	}
	if err := serve(ctx, w, r); err != nil {
		w.Fail(err)
	}
}

// serveResource answers a request to a resource that is no watch, within the
// time for it. It takes a seat when everything is there that it needs.
func (s *Server) serveResource(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	if err := s.prepare(r); err != nil {
		return err
	}
	if r.Sub != nil && r.Sub.Connect != nil {
		return s.connect(ctx, w, r)
	}
	if r.Version.Read != nil {
		return s.readVirtual(ctx, w, r)
	}
	if r.Verb != "get" && r.Verb != "list" { // what admission may take to webhooks
		ctx = metrics.WithOutside(ctx, &r.Usage.Outside)
	}
	switch r.Verb {
	case "get":
		if err := r.Usage.AcquireSeat(ctx); err != nil {
			return err
		}
		return s.get(ctx, w, r)
	case "list":
		return s.list(ctx, w, r)
	case "create":
		return s.create(ctx, w, r)
	case "update":
		return s.update(ctx, w, r)
	case "patch":
		return s.patch(ctx, w, r)
	case "delete":
		return s.delete(ctx, w, r)
	case "deletecollection":
		return s.deleteCollection(ctx, w, r)
	}
	return exchange.MethodNotAllowed()
}

// prepare finds out what the request is about, whether that can be done there,
// and in which form the caller wants the answer.
func (s *Server) prepare(r *exchange.Request) error {
	if err := s.resolve(r); err != nil {
		return err
	}
	if r.Version.Deprecated != "" {
		r.Notes.Warn(r.Version.Deprecated)
		r.Notes.Annotate(s.names.Wire(names.Deprecated), "true")
		if r.Version.Removed != "" {
			r.Notes.Annotate(s.names.Wire(names.RemovedRelease), r.Version.Removed)
		}
	}
	if !allowed(r) {
		return refuseMethod(r)
	}
	r.Routed = true
	if r.Sub != nil && r.Sub.Connect != nil {
		return nil // the form of the answer is another server's
	}
	return s.negotiate(r)
}

// resolve finds the version and sub-resource that the path names.
func (s *Server) resolve(r *exchange.Request) error {
	if r.Version = s.versionOf(r); r.Version == nil {
		if !s.hasBuiltin(r.Group) {
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
	if r.Beyond || r.Version.Act != nil && (r.Name != "" || r.Version.Namespaced && r.Namespace == "") {
		return meta.NoSuchResource() // nothing is kept that could have a name
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
	if r.Rest != "" && !r.Proxied() || r.Sub == nil && r.Version.Dummy != "" {
		return meta.NoSuchResource()
	}
	return nil
}

// hasBuiltin reports whether a registered kind has the group; groups that only
// definitions made are not there beyond what these define.
func (s *Server) hasBuiltin(group string) bool {
	return slices.ContainsFunc(s.types().Types(), func(t *resource.Type) bool {
		return !t.Defined() && slices.ContainsFunc(t.Versions, func(v *resource.Version) bool { return v.Group == group })
	})
}

// isNamespace reports whether the request is for Namespace objects, whose name
// stands where other paths have their namespace. There are none inside a
// namespace: a right in one must not reach another.
func isNamespace(r *exchange.Request) bool {
	return r.Group == "" && r.Resource == "namespaces" && !r.Inside
}

// allowed reports whether the resource, or sub-resource, has the verb there.
func allowed(r *exchange.Request) bool {
	if r.Proxied() {
		return slices.Contains(proxyMethods, r.HTTP.Method)
	}
	if r.HTTP.Method == http.MethodHead || r.Verb == "watch" && r.HTTP.Method != http.MethodGet {
		return false
	}
	if r.Version.Namespaced && r.Namespace == "" && r.Verb != "list" && r.Verb != "watch" {
		return false // the path across namespaces only reads
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

// refuseMethod is the answer to a verb that a resource does not have.
func refuseMethod(r *exchange.Request) error {
	if !r.Version.DelegatedPaths {
		return exchange.MethodNotAllowed()
	}
	if r.Version.Namespaced && r.Namespace == "" {
		return exchange.ErrNoPath
	}
	st := exchange.MethodNotAllowed()
	st.Details = &meta.Details{Group: r.Group, Kind: r.Resource}
	return st
}

// negotiate agrees with the client on the form of the response.
func (s *Server) negotiate(r *exchange.Request) (err error) {
	list := r.Verb == "list" || r.Verb == "deletecollection" && s.rules.Has(compat.ListsDeleted)
	offer := media.Offer{Views: true, List: list, Watch: r.Verb == "watch", Protobuf: r.BodyVersion().Proto() != nil}
	offer.Metadata = r.Version.Act == nil && r.Sub == nil
	offer.NoTable = r.Version.Act != nil || r.Sub != nil && r.Sub.Act != nil // objects that are not stored have no rows
	r.Media, err = media.Negotiate(r.HTTP.Header.Get("Accept"), s.names, offer)
	var st *meta.Status
	if errors.As(err, &st) && r.Version.DelegatedPaths {
		st.Details = nil // custom kinds do not distinguish formats and views
	}
	r.Media.Pretty = r.Media.Pretty || r.Pretty()
	return err
}

// serveOther answers paths that are no resources.
func (s *Server) serveOther(w *exchange.Response, r *exchange.Request) {
	r.Routed = r.HTTP.Method == http.MethodGet || r.HTTP.Method == http.MethodHead
	if err := r.Usage.AcquireSeat(r.HTTP.Context()); err != nil {
		w.Fail(err)
		return
	}
	path := strings.TrimSuffix(r.Path, "/")
	for _, serve := range []func(*exchange.Response, *exchange.Request, string) bool{s.serveHealth, s.serveDiscovery, s.serveOpenAPI, s.serveExtra} {
		if serve(w, r, path) {
			return
		}
	}
	http.NotFound(w, r.HTTP)
}

func (s *Server) serveExtra(w *exchange.Response, r *exchange.Request, path string) bool {
	if path == "/metrics" {
		s.metrics.serve(w, r.HTTP)
		return true
	}
	if h, ok := s.handlers[path]; ok {
		h.ServeHTTP(w, r.HTTP)
		return true
	}
	longest := ""
	for prefix := range s.handlers {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(r.Path, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		return false
	}
	s.handlers[longest].ServeHTTP(w, r.HTTP)
	return true
}
