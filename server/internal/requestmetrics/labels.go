package requestmetrics

import (
	"net/http"
	"slices"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/requestinfo"
)

// component is the label of the component that answers.
const component = "apiserver"

// event is an event in the life of a request.
type event uint8

const (
	answered   event = iota
	aborted          // the server closed the connection
	terminated       // refused or ended to protect the server
	running          // a watch or a connection is open
	received         // the body was read
	streamed         // a watch sent events
	started          // a watch has sent the initial events
)

// key determines the labels of an event. For a request that is not authorized, or whose path
// nothing serves, it has only a verb and a code, so that users without permissions cannot create
// series of types.
type key struct {
	event            event
	version          *resource.Version     // nil if no version is served
	sub              *resource.Subresource // nil if none
	remote           typeLabels            // labels of a type that another server serves
	path             string                // path of pathLabel, or a subresource of another server
	verb, scope, dry string
	code             int
}

// typeLabels are the labels of a version of a type.
type typeLabels struct{ group, version, resource string }

// serves reports whether this server or another one serves a version.
func (m *Metrics) serves(state *resource.State, l typeLabels) bool {
	if t := m.table(); t != nil {
		if v := t.Remote(meta.GroupVersion{Group: l.group, Version: l.version}); v != nil {
			return v.Documents.Resources.Has(l.resource)
		}
	}
	return state.Version(meta.GroupVersionResource{Group: l.group, Version: l.version, Resource: l.resource}) != nil
}

// serial returns a number that changes with the set of served versions.
func (m *Metrics) serial(state *resource.State) int64 {
	if t := m.table(); t != nil {
		return state.Serial + t.Serial
	}
	return state.Serial
}

// remoteLabels returns the labels of a request for another server if the discovery documents of
// that server contain the resource and the subresource. Other paths have no labels, because clients
// can request any path.
func remoteLabels(r *exchange.Request) (l typeLabels, sub string) {
	has := r.Remote.Documents.Resources.Has
	if !has(r.Resource) {
		return l, ""
	}
	if has(r.Resource + "/" + r.Subresource) {
		sub = r.Subresource
	}
	return typeLabels{r.Group, r.APIVersion, r.Resource}, sub
}

// labels returns the labels of a key's version, or none if the version is no longer served, because
// its series were removed. It is called with the lock of kept held.
func (m *Metrics) labels(k key) typeLabels {
	l := k.remote
	if v := k.version; v != nil {
		l = typeLabels{v.Group, v.Name, v.Plural}
	}
	if !m.serves(m.types(), l) {
		return typeLabels{}
	}
	m.used[l] = true
	return l
}

// codeLabel returns the label of a status code. An unknown code has the label of its class.
func codeLabel(code int) string {
	if http.StatusText(code) == "" && code >= 100 && code < 600 {
		code -= code % 100
	} else if code < 100 || code >= 600 {
		code = http.StatusInternalServerError
	}
	return strconv.Itoa(code)
}

// scopeOf returns the scope of a request: "resource" (a single object), "namespace" or "cluster",
// or "" if the request is not for a resource.
func scopeOf(r *exchange.Request) string {
	switch {
	case r.Name != "" || r.Verb == "create":
		return "resource"
	case r.Namespace != "":
		return "namespace"
	case r.IsResource:
		return "cluster"
	}
	return ""
}

// dryRunOf returns the label of the dryRun parameter of a write.
func dryRunOf(r *exchange.Request) string {
	values, ok := r.Query["dryRun"]
	switch {
	case r.Verb == "get" || r.Verb == "list" || r.Verb == "watch" || r.Sub != nil && r.Sub.Connect != nil:
		return "" // they ignore the parameter
	case !ok || slices.Equal(values, []string{""}):
		return ""
	case !slices.ContainsFunc(values, func(v string) bool { return v != "All" }):
		return "All"
	}
	return "invalid"
}

// verbOf returns the label of the verb of a request.
func verbOf(r *exchange.Request, sub *resource.Subresource, scope string) string {
	switch {
	case sub != nil && sub.Connect != nil, r.Remote != nil && requestinfo.ConnectsBy(r.Subresource):
		return "CONNECT"
	case r.Verb == "watch":
		return "WATCH"
	}
	switch r.HTTP.Method {
	case http.MethodGet, http.MethodHead:
		if scope == "namespace" || scope == "cluster" {
			return "LIST"
		}
		return "GET"
	case http.MethodPatch:
		if kind, err := media.PatchContentType(r.HTTP.Header.Get("Content-Type"), true); err == nil && kind == media.ApplyPatch {
			return "APPLY"
		}
		return "PATCH"
	case http.MethodPost, http.MethodPut, http.MethodDelete:
		return r.HTTP.Method
	}
	return "other"
}

// pathLabel returns the subresource label of a path that is not a resource. Only the paths of
// health checks, metrics and the version have a label.
func pathLabel(path string) string {
	switch path {
	case "/livez", "/readyz", "/healthz", "/metrics", "/metrics/slis", "/version":
		return path
	}
	return ""
}
