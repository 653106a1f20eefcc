package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"orch.io/controlplane/storage"
)

// metrics are what operators watch, under the names that dashboards know.
type metrics struct {
	registry   *prometheus.Registry
	handler    http.Handler
	requests   *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	deprecated *prometheus.GaugeVec
	panics     *prometheus.CounterVec
}

func newMetrics(reg *prometheus.Registry, b storage.Backend) *metrics {
	m := &metrics{
		registry: reg,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and HTTP code.",
		}, []string{"verb", "group", "version", "resource", "subresource", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "Time to answer requests that are no watches, in seconds.",
			Buckets: []float64{.0005, .001, .005, .01, .05, .1, .5, 1, 5, 30},
		}, []string{"verb", "resource"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "apiserver_current_inflight_requests", Help: "Requests being answered, watches included.",
		}),
		deprecated: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_requested_deprecated_apis", Help: "1 for each deprecated version that was asked for.",
		}, []string{"group", "version", "resource", "subresource", "removed_release"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_recovered_panics_total", Help: "Panics that ended a request or a step of a controller, by which.",
		}, []string{"in"}),
	}
	reg.MustRegister(m.requests, m.duration, m.inFlight, m.deprecated, m.panics)
	watchIntegrity(reg, b)
	m.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return m
}

// count counts a request out that was counted in when it began.
func (s *Server) count(r *request, w *response, begun time.Time) {
	s.metrics.inFlight.Dec()
	// Labels come from the catalog, not from the caller, so that their number is
	// bounded.
	var group, version, resource, sub string
	if r.version != nil {
		group, version, resource = r.version.Group, r.version.Name, r.version.Plural
	}
	if r.sub != nil {
		sub = r.sub.Name
	}
	verb := r.Verb
	if !knownVerbs[verb] {
		verb = "other"
	}
	s.metrics.requests.WithLabelValues(verb, group, version, resource, sub, strconv.Itoa(w.code)).Inc()
	if !s.lasts(r) {
		s.metrics.duration.WithLabelValues(verb, resource).Observe(time.Since(begun).Seconds())
	}
	if r.version != nil && r.version.Deprecated != "" {
		s.metrics.deprecated.WithLabelValues(group, version, resource, sub, r.version.Removed).Set(1)
	}
}

var knownVerbs = map[string]bool{
	"get": true, "list": true, "watch": true, "create": true, "update": true, "patch": true, "delete": true,
	"deletecollection": true, "post": true, "put": true, "head": true, "options": true,
}
