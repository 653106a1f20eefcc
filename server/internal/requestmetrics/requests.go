package requestmetrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
)

// handles has the metrics with the labels of a key. The event determines which of them are set.
type handles struct {
	total         prometheus.Counter
	duration, sli prometheus.Observer
	size          prometheus.Observer // nil if the verb has none; for the event started, the duration
	running       prometheus.Gauge
	watch         *Watch
}

// Watch has the metrics of the watches of a version.
type Watch struct {
	Events prometheus.Counter  // events sent
	Sizes  prometheus.Observer // of events, in bytes
	Slow   prometheus.Counter  // watches that fell behind the history
}

// Finished records a request that began at begun.
func (m *Metrics) Finished(r *exchange.Request, w *exchange.Response, begun time.Time) {
	took := time.Since(begun)
	if r.Aborted {
		m.handlesFor(r, aborted, 0).total.Inc()
		if w.Code == 0 {
			return
		}
	}
	code := w.Code
	if code == 0 { // net/http writes 200 for a handler that writes nothing
		code = http.StatusOK
	}
	h := m.handlesFor(r, answered, code)
	h.total.Inc()
	h.duration.Observe(took.Seconds())
	h.sli.Observe((took - r.Usage.Outside.Spent()).Seconds())
	if h.size != nil {
		h.size.Observe(float64(w.Size))
	}
	if r.Usage.Refused || code == http.StatusGatewayTimeout {
		m.handlesFor(r, terminated, code).total.Inc()
	}
}

// Running counts a watch or a connection as open until ended is called.
func (m *Metrics) Running(r *exchange.Request) (ended func()) {
	g := m.handlesFor(r, running, 0).running
	g.Inc()
	return g.Dec
}

// ReceivedBody records the size of the body of a request in bytes.
func (m *Metrics) ReceivedBody(r *exchange.Request, size int) {
	m.handlesFor(r, received, 0).size.Observe(float64(size))
}

// WatchStarted records that a watch has sent its initial events after the given time.
func (m *Metrics) WatchStarted(r *exchange.Request, took time.Duration) {
	m.handlesFor(r, started, 0).size.Observe(took.Seconds())
}

// Watch returns the metrics of the watches of a version.
func (m *Metrics) Watch(v *resource.Version) *Watch {
	return m.handles(m.types(), key{event: streamed, version: v}).watch
}

// handlesFor returns the metrics of an event of a request.
func (m *Metrics) handlesFor(r *exchange.Request, e event, code int) *handles {
	k, scope := key{event: e, code: code}, scopeOf(r)
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
	if e == received {
		k.verb = r.Verb
	}
	return m.handles(m.types(), k)
}

// handles returns the metrics of a key, which it caches.
func (m *Metrics) handles(state *resource.State, k key) *handles {
	return m.kept.Get(m.serial(state), k, func() *handles { return m.makeHandles(k) }, m.dropUnserved)
}

// makeHandles creates the metrics of a key. It is called with the lock of kept held.
func (m *Metrics) makeHandles(k key) *handles {
	l, sub, code := m.labels(k), k.path, codeLabel(k.code)
	switch {
	case l == typeLabels{}:
		k.scope, k.dry = "", ""
	case k.sub != nil:
		sub = k.sub.Name
	}
	labels := []string{k.verb, l.group, l.version, l.resource, sub, k.scope, component}
	with := func(more ...string) []string { return append(labels[:len(labels):len(labels)], more...) }
	switch k.event {
	case aborted:
		return &handles{total: m.aborts.WithLabelValues(labels[:6]...)}
	case terminated:
		return &handles{total: m.terminations.WithLabelValues(with(code)...)}
	case running:
		return &handles{running: m.running.WithLabelValues(labels...)}
	case streamed:
		return &handles{watch: &Watch{
			Events: m.events.WithLabelValues(l.group, l.version, l.resource), Sizes: m.eventSizes.WithLabelValues(l.group, l.version, l.resource),
			Slow: m.slowWatchers.WithLabelValues(l.group, l.resource),
		}}
	case started:
		return &handles{size: m.watchStarts.WithLabelValues(l.group, l.version, l.resource, k.scope)}
	case received:
		return &handles{size: m.bodySizes.WithLabelValues(l.group, l.resource, k.verb)}
	}
	if v := k.version; v != nil && v.Deprecated != "" {
		m.deprecated.WithLabelValues(l.group, l.version, l.resource, sub, v.Removed).Set(1)
	}
	h := &handles{
		total:    m.requests.WithLabelValues(with(k.dry, code)...),
		duration: m.duration.WithLabelValues(with(k.dry)...), sli: m.sli.WithLabelValues(labels...),
	}
	if k.verb == "GET" || k.verb == "LIST" {
		h.size = m.responseSizes.WithLabelValues(labels...)
	}
	return h
}

// dropUnserved removes the series of versions that are no longer served. It is called with the lock
// of kept held.
func (m *Metrics) dropUnserved() {
	state := m.types()
	for l := range m.used {
		if m.serves(state, l) {
			continue
		}
		delete(m.used, l)
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
