package server

import (
	"net/http"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
)

// route hands the request to what its path names.
func (s *Server) route(w *response, r *request) {
	serve := s.serveResource
	switch {
	case r.remote != nil:
		serve = s.forward
	case !r.IsResource:
		s.serveOther(w, r)
		return
	case r.Verb == "watch":
		serve = s.serveWatch
	}
	if err := serve(w, r); err != nil {
		s.fail(w, r, err)
	}
}

// serveResource answers a request to a resource that is no watch, within the
// time for it. It takes a seat when everything is there that it needs.
func (s *Server) serveResource(w *response, r *request) error {
	if err := s.prepare(r); err != nil {
		return err
	}
	if r.sub != nil && r.sub.Connect != nil {
		return s.connect(w, r)
	}
	ctx := r.context()
	if r.version.Read != nil {
		return s.readVirtual(ctx, w, r)
	}
	if r.Verb != "get" && r.Verb != "list" { // what admission may take to webhooks
		ctx = metrics.WithOutside(ctx, &r.outside)
	}
	switch r.Verb {
	case "get":
		if err := s.acquireSeat(ctx, r); err != nil {
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
	return methodNotAllowed()
}

// tooMany refuses a request so that the server has room for others.
func (r *request) tooMany(why string) *meta.Status {
	r.terminated = true
	st := meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "%s, please try again later", why)
	st.Details = &meta.Details{RetryAfterSeconds: 1}
	return st
}

// prepare finds out what the request is about, whether that can be done there,
// and in which form the caller wants the answer.
func (s *Server) prepare(r *request) error {
	if err := s.resolve(r); err != nil {
		return err
	}
	if r.version.Deprecated != "" {
		r.notes.Warn(r.version.Deprecated)
		r.notes.Annotate(s.names.Wire(names.Deprecated), "true")
		if r.version.Removed != "" {
			r.notes.Annotate(s.names.Wire(names.RemovedRelease), r.version.Removed)
		}
	}
	if !allowed(r) {
		return refuseMethod(r)
	}
	r.routed = true
	if r.sub != nil && r.sub.Connect != nil {
		return nil // the form of the answer is another server's
	}
	return s.negotiate(r)
}

// resolve finds the version and sub-resource that the path names.
func (s *Server) resolve(r *request) error {
	if r.version = s.versionOf(r); r.version == nil {
		if !s.hasBuiltin(r.Group) {
			return errNoPath
		}
		return meta.NoSuchResource()
	}
	if r.version.Namespaced != (r.Namespace != "") && (r.Name != "" || !r.version.Namespaced) && !r.isNamespace() {
		if r.version.DelegatedPaths {
			return errNoPath
		}
		return meta.NoSuchResource()
	}
	if r.Beyond || r.version.Act != nil && (r.Name != "" || r.version.Namespaced && r.Namespace == "") {
		return meta.NoSuchResource() // nothing is kept that could have a name
	}
	if r.isNamespace() {
		r.Namespace = ""
	}
	if r.sub = r.version.Subresource(r.Subresource); r.sub == nil && r.Subresource != "" {
		if r.version.DelegatedPaths {
			return meta.NotFound(r.version.Resource().GroupResource(), r.Name)
		}
		return meta.NoSuchResource()
	}
	if r.Rest != "" && !r.proxied() || r.sub == nil && r.version.Dummy != "" {
		return meta.NoSuchResource()
	}
	return nil
}

// errNoPath says that a path is none of the API's: it is answered with a plain
// 404, as any other path that is not there.
var errNoPath error = meta.Failure(http.StatusNotFound, meta.ReasonNotFound, "404 page not found")

// hasBuiltin reports whether a registered kind has the group; groups that only
// definitions made are not there beyond what these define.
func (s *Server) hasBuiltin(group string) bool {
	return slices.ContainsFunc(s.catalog.Types().Types(), func(t *resource.Type) bool {
		return !t.Defined() && slices.ContainsFunc(t.Versions, func(v *resource.Version) bool { return v.Group == group })
	})
}

// isNamespace reports whether the request is for Namespace objects, whose name
// stands where other paths have their namespace. There are none inside a
// namespace: a right in one must not reach another.
func (r *request) isNamespace() bool {
	return r.Group == "" && r.Resource == "namespaces" && !r.Inside
}

// allowed reports whether the resource, or sub-resource, has the verb there.
func allowed(r *request) bool {
	if r.proxied() {
		return slices.Contains(proxyMethods, r.http.Method)
	}
	if r.http.Method == http.MethodHead || r.Verb == "watch" && r.http.Method != http.MethodGet {
		return false
	}
	if r.version.Namespaced && r.Namespace == "" && r.Verb != "list" && r.Verb != "watch" {
		return false // the path across namespaces only reads
	}
	if r.sub != nil {
		return slices.Contains(r.sub.Verbs(), r.Verb)
	}
	if r.Verb == "create" && r.Name != "" {
		return false
	}
	if r.Name == "" && (r.Verb == "update" || r.Verb == "patch") {
		return false
	}
	return slices.Contains(r.version.Verbs(), r.Verb)
}

// refuseMethod is the answer to a verb that a resource does not have.
func refuseMethod(r *request) error {
	if !r.version.DelegatedPaths {
		return methodNotAllowed()
	}
	if r.version.Namespaced && r.Namespace == "" {
		return errNoPath
	}
	st := methodNotAllowed()
	st.Details = &meta.Details{Group: r.Group, Kind: r.Resource}
	return st
}

func methodNotAllowed() *meta.Status {
	st := meta.Failure(http.StatusMethodNotAllowed, meta.ReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
	st.Details = &meta.Details{}
	return st
}

// serveOther answers paths that are no resources.
func (s *Server) serveOther(w *response, r *request) {
	r.routed = r.http.Method == http.MethodGet || r.http.Method == http.MethodHead
	if err := s.acquireSeat(r.http.Context(), r); err != nil {
		s.fail(w, r, err)
		return
	}
	path := strings.TrimSuffix(r.Path, "/")
	for _, serve := range []func(*response, *request, string) bool{s.serveHealth, s.serveDiscovery, s.serveOpenAPI, s.serveExtra} {
		if serve(w, r, path) {
			return
		}
	}
	http.NotFound(w, r.http)
}

func (s *Server) serveExtra(w *response, r *request, path string) bool {
	if h, ok := s.handlers[path]; ok {
		h.ServeHTTP(w, r.http)
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
	s.handlers[longest].ServeHTTP(w, r.http)
	return true
}
