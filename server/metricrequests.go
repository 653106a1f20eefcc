package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
)

// component is who answers, in metrics.
const component = "apiserver"

// figure is what is counted of a request.
type figure uint8

const (
	answered figure = iota
	aborted
	terminated
	running
	received
	streamed
	started
)

// requestKey is what the labels of a figure follow from. Of a request that is not routed,
// because its caller may not make it or nothing serves it, that is its verb and its code
// alone: callers who may do nothing make no series of types.
type requestKey struct {
	figure           figure
	version          *resource.Version     // nil: nothing that is served
	sub              *resource.Subresource // nil: none
	remote           resourceLabels        // of what another server serves; else empty
	path             string                // of the paths that metrics tell apart, or a sub-resource of another server; else empty
	verb, scope, dry string
	code             int
}

// resourceLabels are those of a type in a version.
type resourceLabels struct{ group, version, resource string }

// tells reports whether what labels tell of is served still, here or by another server.
func (s *Server) tells(state *resource.State, l resourceLabels) bool {
	if s.aggregation != nil {
		if v := s.aggregation.Table().Remote(meta.GroupVersion{Group: l.group, Version: l.version}); v != nil {
			return v.Documents.Resources.Has(l.resource)
		}
	}
	return state.Version(meta.Resource{Group: l.group, Version: l.version, Resource: l.resource}) != nil
}

// labelsOf is which labels there may be: another number after any change of them.
func (s *Server) labelsOf(state *resource.State) int64 {
	if s.aggregation == nil {
		return state.Serial
	}
	return state.Serial + s.aggregation.Table().Serial
}

// remoteLabels are those of a request that goes on to another server: the resources and
// sub-resources that it tells of, as callers may ask for any.
func remoteLabels(r *exchange.Request) (l resourceLabels, sub string) {
	has := r.Remote.Documents.Resources.Has
	if !has(r.Resource) {
		return l, ""
	}
	if has(r.Resource + "/" + r.Subresource) {
		sub = r.Subresource
	}
	return resourceLabels{r.Group, r.APIVersion, r.Resource}, sub
}

// requestCounts are the handles of a key: those that its figure has.
type requestCounts struct {
	total         prometheus.Counter
	duration, sli prometheus.Observer
	size          prometheus.Observer // or another amount; nil: not told of the verb
	running       prometheus.Gauge
	stream        *streamCounts
}

// streamCounts are the handles of the watches of a version.
type streamCounts struct {
	events prometheus.Counter
	sizes  prometheus.Observer
	slow   prometheus.Counter
}

// count counts a request out that was counted in when it began.
func (s *Server) count(r *exchange.Request, w *exchange.Response, begun time.Time) {
	took := time.Since(begun)
	if r.Aborted {
		s.metrics.of(s, r, aborted, 0).total.Inc()
		if w.Code == 0 {
			return
		}
	}
	code := w.Code
	if code == 0 { // net/http answers for a handler that wrote nothing
		code = http.StatusOK
	}
	c := s.metrics.of(s, r, answered, code)
	c.total.Inc()
	c.duration.Observe(took.Seconds())
	c.sli.Observe((took - r.Usage.Outside.Spent()).Seconds())
	if c.size != nil {
		c.size.Observe(float64(w.Size))
	}
	if r.Usage.Refused || code == http.StatusGatewayTimeout {
		s.metrics.of(s, r, terminated, code).total.Inc()
	}
}

// runs counts a watch or a connection in, until the result is called.
func (s *Server) runs(r *exchange.Request) (ended func()) {
	g := s.metrics.of(s, r, running, 0).running
	g.Inc()
	return g.Dec
}

// of returns the handles of a figure of a request.
func (m *counts) of(s *Server, r *exchange.Request, f figure, code int) *requestCounts {
	k, scope := requestKey{figure: f, code: code}, scopeOf(r)
	switch {
	case !r.Routed:
	case r.Remote != nil:
		k.remote, k.path = remoteLabels(r)
		k.scope, k.dry = scope, dryRunOf(r)
	case r.Version != nil:
		k.version, k.sub, k.scope, k.dry = r.Version, r.Sub, scope, dryRunOf(r)
	case !r.IsResource:
		k.path = pathLabel(r.Path)
	}
	k.verb = verbOf(r, k.sub, scope)
	if f == received {
		k.verb = r.Verb
	}
	return m.handles(s, s.types(), k)
}

func (m *counts) handles(s *Server, state *resource.State, k requestKey) *requestCounts {
	return m.kept.Get(s.labelsOf(state), k, func() *requestCounts { return m.make(s, k) }, func() { m.forget(s) })
}

// labels are those of a version: none of what is not served any more, since its series
// have gone. The lock of kept is held.
func (m *counts) labels(s *Server, k requestKey) resourceLabels {
	l := k.remote
	if v := k.version; v != nil {
		l = resourceLabels{v.Group, v.Name, v.Plural}
	}
	if !s.tells(s.types(), l) {
		return resourceLabels{}
	}
	m.told[l] = true
	return l
}

// make makes the handles of a key.
func (m *counts) make(s *Server, k requestKey) *requestCounts {
	l, sub, code := m.labels(s, k), k.path, codeLabel(k.code)
	switch {
	case l == resourceLabels{}:
		k.scope, k.dry = "", ""
	case k.sub != nil:
		sub = k.sub.Name
	}
	about := []string{k.verb, l.group, l.version, l.resource, sub, k.scope, component}
	with := func(more ...string) []string { return append(about[:len(about):len(about)], more...) }
	switch k.figure {
	case aborted:
		return &requestCounts{total: m.aborts.WithLabelValues(about[:6]...)}
	case terminated:
		return &requestCounts{total: m.terminations.WithLabelValues(with(code)...)}
	case running:
		return &requestCounts{running: m.running.WithLabelValues(about...)}
	case streamed:
		return &requestCounts{stream: m.makeStream(l)}
	case started:
		return &requestCounts{size: m.watchStarts.WithLabelValues(l.group, l.version, l.resource, k.scope)}
	case received:
		return &requestCounts{size: m.bodySizes.WithLabelValues(l.group, l.resource, k.verb)}
	}
	if v := k.version; v != nil && v.Deprecated != "" {
		m.deprecated.WithLabelValues(l.group, l.version, l.resource, sub, v.Removed).Set(1)
	}
	c := &requestCounts{
		total:    m.requests.WithLabelValues(with(k.dry, code)...),
		duration: m.duration.WithLabelValues(with(k.dry)...), sli: m.sli.WithLabelValues(about...),
	}
	if k.verb == "GET" || k.verb == "LIST" {
		c.size = m.responseSizes.WithLabelValues(about...)
	}
	return c
}

// stream returns the handles of the watches of a version.
func (m *counts) stream(s *Server, v *resource.Version) *streamCounts {
	k := requestKey{figure: streamed, version: v}
	return m.handles(s, s.types(), k).stream
}

func (m *counts) makeStream(l resourceLabels) *streamCounts {
	return &streamCounts{
		events: m.events.WithLabelValues(l.group, l.version, l.resource), sizes: m.eventSizes.WithLabelValues(l.group, l.version, l.resource),
		slow: m.slowWatchers.WithLabelValues(l.group, l.resource),
	}
}

// forget drops what is told of versions that are gone. The lock of kept is held.
func (m *counts) forget(s *Server) {
	state := s.types()
	for l := range m.told {
		if s.tells(state, l) {
			continue
		}
		delete(m.told, l)
		gone := prometheus.Labels{"group": l.group, "version": l.version, "resource": l.resource}
		for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
			m.requests, m.aborts, m.terminations, m.duration, m.sli, m.responseSizes, m.running, m.deprecated, m.events, m.eventSizes, m.watchStarts,
		} {
			v.DeletePartialMatch(gone)
		}
		if state.Type(meta.GroupResource{Group: l.group, Resource: l.resource}) == nil {
			delete(gone, "version")
			m.bodySizes.DeletePartialMatch(gone)
			m.slowWatchers.DeletePartialMatch(gone)
		}
	}
}

// scopeOf is what a request is about: one object, a namespace, all of them, or, of what is
// no resource, nothing.
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

// dryRunOf is how a write says that it is a dry run, as far as that is a word that it
// may say.
func dryRunOf(r *exchange.Request) string {
	values, ok := r.Query["dryRun"]
	switch {
	case r.Verb == "get" || r.Verb == "list" || r.Verb == "watch" || r.Sub != nil && r.Sub.Connect != nil:
		return "" // which mean nothing by it
	case !ok || slices.Equal(values, []string{""}):
		return ""
	case !slices.ContainsFunc(values, func(v string) bool { return v != "All" }):
		return "All"
	}
	return "invalid"
}

// verbOf is what metrics call the verb of a request.
func verbOf(r *exchange.Request, sub *resource.Subresource, scope string) string {
	switch {
	case sub != nil && sub.Connect != nil, r.Remote != nil && slices.Contains(longSubresources, r.Subresource):
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

// pathLabel is the sub-resource as which metrics know a path that is no resource: those of
// the checks and of the metrics.
func pathLabel(path string) string {
	switch path {
	case "/livez", "/readyz", "/healthz", "/metrics", "/metrics/slis", "/version":
		return path
	}
	return ""
}
