// Package requestinfo derives the attributes of a request from its method, path and query.
package requestinfo

import (
	"net/http"
	"net/url"
	"strings"

	"orch.io/controlplane/api/meta"
)

// Info has the attributes of a request. If the path does not have the form of a resource path, only
// Verb, Path and Query are set.
type Info struct {
	Verb  string // get, list, watch, create, ...; "" for an unknown method of a resource; the HTTP method in lower case for other paths
	Path  string
	Query url.Values

	IsResource       bool
	Group            string
	APIVersion       string // version segment of the path
	Resource         string
	Namespace        string
	InNamespace      bool // the path is below a namespace
	Name             string
	Subresource      string
	HasExtraSegments bool   // the path has further segments after the subresource, so that it is not found
	Rest             string // the path after the subresource proxy, not normalized
	Selected         string // name of the only object that the field selector of a list or watch can match
}

// Parse returns the attributes of a request. Routing and authorization use the same attributes, so
// that no spelling of a path can mean different things to them.
func Parse(h *http.Request) Info {
	r := Info{Path: h.URL.Path}
	if h.URL.RawQuery != "" {
		r.Query = h.URL.Query()
	}
	if !r.parsePath(h.Method) {
		r.Verb = strings.ToLower(h.Method)
	}
	return r
}

// parsePath sets the attributes of a resource path. It reports false if the path does not have that
// form.
func (r *Info) parsePath(method string) bool {
	var room [8]string
	parts := room[:0]
	// Only the first of several leading slashes is removed: "//api/v1" is not a path of the API.
	path := strings.TrimRight(strings.TrimPrefix(r.Path, "/"), "/")
	for p, left, more := "", path, true; more; {
		p, left, more = strings.Cut(left, "/")
		if p == "" || p == "." || p == ".." {
			return false
		}
		if parts = append(parts, p); p == "proxy" && endsInSubresource(parts) {
			end := strings.Index(r.Path, path) + len(path) - len(left)
			if more {
				end--
			}
			r.Rest = r.Path[end:]
			break
		}
	}
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		r.APIVersion, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.Group, r.APIVersion, parts = parts[1], parts[2], parts[3:]
	default:
		return false
	}
	streaming := false
	if parts[0] == "watch" && len(parts) > 1 {
		streaming, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		r.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			r.InNamespace, parts = true, parts[2:]
		}
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = parts[2]
	}
	r.HasExtraSegments = len(parts) > 3
	r.IsResource = true
	r.Verb = resourceVerb(method, r.Name != "", streaming || Truthy(r.Query, "watch"), streaming)
	if !streaming {
		r.Selected = selectedName(r)
	}
	return true
}

// endsInSubresource reports whether the last segment is at the position of a subresource. The
// deprecated watch paths have no subresources.
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

// resourceVerb returns the API verb of a method. Deprecated watch paths (oldForm) always mean
// watch. An unknown method has the verb "".
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
	return "" // a method such as "WATCH" must not be taken for a verb
}

// selectedName returns the name in the field selector of a list or watch, so that a permission for
// that name suffices.
func selectedName(r *Info) string {
	if r.Name != "" || (r.Verb != "list" && r.Verb != "watch") || !r.Query.Has("fieldSelector") {
		return ""
	}
	fields, err := meta.ParseFieldSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := fields.Value("metadata.name")
	return name
}

// Truthy parses a boolean query parameter like the API: every value except 0 and false is true.
func Truthy(q url.Values, name string) bool {
	v, ok := q[name]
	return ok && len(v) > 0 && v[0] != "0" && !strings.EqualFold(v[0], "false")
}

// ConnectsBy reports whether requests to a subresource with this name are long-running, by the
// conventions of Kubernetes. It is for types of aggregated API servers; types of this server
// declare it.
func ConnectsBy(subresource string) bool {
	switch subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		return true
	}
	return false
}
