package server

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/media"
)

// request is one HTTP request on its way through the server: what its path and
// method ask for, and, as they become known, who asks and which version of
// which type it is about.
type request struct {
	http  *http.Request
	query url.Values
	who   auth.Authenticator
	user  *auth.User
	notes notes // warnings and audit annotations

	id       string        // names it to the caller and in the audit
	limit    time.Duration // of its time
	deadline writeDeadline // none in the server's own requests
	share    share         // what it holds of what all share; nothing in the server's own requests

	record record

	verb        string // get, list, watch, create, ...; of a path that is no resource the HTTP method in lower case
	path        string
	isResource  bool // the path has the shape of a resource; the rest is set then
	group       string
	apiVersion  string // the version segment
	resource    string
	namespace   string
	inside      bool // the resource stands below a namespace
	name        string
	subresource string
	beyond      bool   // the path goes on after the sub-resource, where nothing is
	rest        string // of the path, after the sub-resource proxy, as it came
	selected    string // the one name that a list or watch is narrowed to by its field selector

	media   media.Type            // the form of the answer
	version *resource.Version     // what resource names, nil if nothing
	sub     *resource.Subresource // what subresource names, nil if none
}

// key is the object that the path names.
func (r *request) key() meta.Key { return meta.Key{Namespace: r.namespace, Name: r.name} }

// action is what authorizers are asked about.
func (r *request) action() auth.Action {
	if !r.isResource {
		return auth.Action{User: r.user, Verb: r.verb, Path: r.path}
	}
	return auth.Action{
		User: r.user, Verb: r.verb, Path: r.path,
		Group: r.group, Version: r.apiVersion, Resource: r.resource, Subresource: r.subresource,
		Namespace: r.namespace, Name: r.name + r.selected, // one of them is empty
		Fields: r.fields(),
	}
}

// fields is the field selector of a request for several objects, as sent.
func (r *request) fields() string {
	switch r.verb {
	case "list", "watch", "deletecollection":
		return r.query.Get("fieldSelector")
	}
	return ""
}

// parse finds out what a request asks for, from its method, path and query
// alone. Paths that do not have the shape of a resource stay non-resource
// requests; routing uses the same fields as authorization, so that no spelling
// of a path can be one thing to the one and another to the other.
func parse(h *http.Request) *request {
	r := &request{http: h, path: h.URL.Path}
	if h.URL.RawQuery != "" {
		r.query = h.URL.Query()
	}
	if !r.parsePath() {
		r.verb = strings.ToLower(h.Method)
	}
	return r
}

// parsePath takes a path apart that has the shape of a resource.
func (r *request) parsePath() bool {
	var room [8]string
	parts := room[:0]
	path := strings.Trim(r.path, "/")
	for p, left, more := "", path, true; more; {
		p, left, more = strings.Cut(left, "/")
		if p == "" || p == "." || p == ".." {
			return false
		}
		if parts = append(parts, p); p == "proxy" && endsInSubresource(parts) {
			end := strings.Index(r.path, path) + len(path) - len(left)
			if more {
				end--
			}
			r.rest = r.path[end:]
			break
		}
	}
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		r.apiVersion, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.group, r.apiVersion, parts = parts[1], parts[2], parts[3:]
	default:
		return false
	}
	streaming := false
	if parts[0] == "watch" && len(parts) > 1 {
		streaming, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		r.namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			r.inside, parts = true, parts[2:]
		}
	}
	r.resource = parts[0]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = parts[2]
	}
	r.beyond = len(parts) > 3
	r.isResource = true
	r.verb = resourceVerb(r.http.Method, r.name != "", streaming || truthy(r.query, "watch"), streaming)
	if !streaming {
		r.selected = selectedName(r)
	}
	return true
}

// endsInSubresource reports whether the last part of a path is where the names of
// sub-resources of items stand. The old paths of watches have none.
func endsInSubresource(parts []string) bool {
	at := 2
	if parts[0] == "apis" {
		at = 3
	} else if parts[0] != "api" {
		return false
	}
	if len(parts) > at && parts[at] == "namespaces" {
		at += 2
	}
	return len(parts) == at+3 && parts[at] != "watch"
}

// resourceVerb is the API verb of a method. The old paths of watches have no
// other; methods that the API does not know are no verb of it.
func resourceVerb(method string, item, watch, oldForm bool) string {
	if oldForm {
		return "watch"
	}
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case watch && !item:
			return "watch"
		case item:
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if item {
			return "delete"
		}
		return "deletecollection"
	}
	return "" // a method must not pass for a verb by its name
}

// selectedName is the name that a list or watch is narrowed to by its field
// selector, so that a grant for the name covers it.
func selectedName(r *request) string {
	if r.name != "" || (r.verb != "list" && r.verb != "watch") || !r.query.Has("fieldSelector") {
		return ""
	}
	fields, err := meta.ParseFieldSelector(r.query.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := fields.Value("metadata.name")
	return name
}

// lasts reports whether a request is one that lasts as long as its caller wants.
func (s *Server) lasts(r *request) bool { return r.verb == "watch" || s.connects(r) }

// connects reports whether a request goes on to another server.
func (s *Server) connects(r *request) bool {
	if r.subresource == "" {
		return false
	}
	v := s.types().Version(meta.Resource{Group: r.group, Version: r.apiVersion, Resource: r.resource})
	if v == nil {
		return false
	}
	sub := v.Subresource(r.subresource)
	return sub != nil && sub.Connect != nil
}

// truthy reads a boolean query parameter as the API does: everything but 0 and
// false is true.
func truthy(q url.Values, name string) bool {
	v, ok := q[name]
	return ok && len(v) > 0 && v[0] != "0" && !strings.EqualFold(v[0], "false")
}
