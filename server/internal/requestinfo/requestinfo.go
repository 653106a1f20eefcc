// Package requestinfo tells what a request asks for, from its method, path and query alone.
package requestinfo

import (
	"net/http"
	"net/url"
	"strings"

	"orch.io/controlplane/api/meta"
)

// Info is what a request asks for. Only Verb, Path and Query are set where the path does
// not have the shape of a resource.
type Info struct {
	Verb  string // get, list, watch, create, ...; of a path that is no resource the HTTP method in lower case
	Path  string
	Query url.Values

	IsResource  bool
	Group       string
	APIVersion  string // the version segment
	Resource    string
	Namespace   string
	Inside      bool // the resource stands below a namespace
	Name        string
	Subresource string
	Beyond      bool   // the path goes on after the sub-resource, where nothing is
	Rest        string // of the path, after the sub-resource proxy, as it came
	Selected    string // the one name that a list or watch is narrowed to by its field selector
}

// Of takes a request apart. Paths that do not have the shape of a resource stay
// non-resource requests; routing uses the same fields as authorization, so that no
// spelling of a path can be one thing to the one and another to the other.
func Of(h *http.Request) Info {
	r := Info{Path: h.URL.Path}
	if h.URL.RawQuery != "" {
		r.Query = h.URL.Query()
	}
	if !r.parsePath(h.Method) {
		r.Verb = strings.ToLower(h.Method)
	}
	return r
}

// parsePath takes a path apart that has the shape of a resource.
func (r *Info) parsePath(method string) bool {
	var room [8]string
	parts := room[:0]
	// Of the slashes at the start only one belongs to the path: "//api/v1" is no path of the API.
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
			r.Inside, parts = true, parts[2:]
		}
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = parts[2]
	}
	r.Beyond = len(parts) > 3
	r.IsResource = true
	r.Verb = resourceVerb(method, r.Name != "", streaming || Truthy(r.Query, "watch"), streaming)
	if !streaming {
		r.Selected = selectedName(r)
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

// Truthy reads a boolean query parameter as the API does: everything but 0 and
// false is true.
func Truthy(q url.Values, name string) bool {
	v, ok := q[name]
	return ok && len(v) > 0 && v[0] != "0" && !strings.EqualFold(v[0], "false")
}

// ConnectsBy reports whether requests to a sub-resource of that name are long-running, by the
// conventions of the field. It is for types that another server serves; those of this server say so
// themselves.
func ConnectsBy(subresource string) bool {
	switch subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		return true
	}
	return false
}
