// Package telemetry registers metrics of a server's stored objects, caches, store and process.
// Package requestmetrics has the metrics of requests.
package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Options are the parts of a server that have metrics.
type Options struct {
	Names    names.Profile
	Registry *metrics.Registry
	Types    func() *resource.State
	Hub      *objectcache.Set
	Backend  storage.Backend
	Features *features.Set
	Audit    auth.Auditor   // registered if it is a prometheus.Collector
	Build    map[string]any // the document of /version
}

// Register registers the metrics.
func Register(o Options) error {
	set := metrics.For(o.Registry)
	o.addTypes(set)
	o.addStore(set)
	o.addIntegrity(set)
	o.addBuild(set)
	o.addFeatures(set)
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		_ = o.Registry.Register(c) // the registry may belong to the program, which may have registered them itself
	}
	return errors.Join(set.Err(), o.addAudit())
}

// addAudit registers the metrics of the audit. Several servers may share an audit.
func (o Options) addAudit() error {
	c, ok := o.Audit.(prometheus.Collector)
	if !ok {
		return nil
	}
	err := o.Registry.Register(c)
	var shared prometheus.AlreadyRegisteredError
	if err == nil || errors.As(err, &shared) {
		return nil
	}
	return fmt.Errorf("metrics of the audit: %w", err)
}

// addBuild adds the version and the platform of the server.
func (o Options) addBuild(set *metrics.Set) {
	var labels, values []string
	for _, l := range [][2]string{{"major", "major"}, {"minor", "minor"}, {"git_version", "gitVersion"}, {"git_commit", "gitCommit"}, {"git_tree_state", "gitTreeState"},
		{"build_date", "buildDate"}, {"go_version", "goVersion"}, {"compiler", "compiler"}, {"platform", "platform"}} {
		text, _ := o.Build[l[1]].(string)
		labels, values = append(labels, l[0]), append(values, text)
	}
	set.Gauges(metrics.Family{
		Name: o.Names.Wire(wellknown.BuildMetric), Help: "1, with the version of the server and of its build tools.", Stability: metrics.Beta, Labels: labels,
	}).WithLabelValues(values...).Set(1)
}

// addFeatures adds the feature gates.
func (o Options) addFeatures(set *metrics.Set) {
	gauge := set.Gauges(metrics.Family{
		Name: o.Names.Wire(wellknown.FeatureMetric), Help: "1 if the feature is on, else 0, by the stage of its gate.",
		Stability: metrics.Beta, Labels: []string{"name", "stage"},
	})
	for _, g := range o.Features.All() {
		on := 0.0
		if g.On {
			on = 1
		}
		gauge.WithLabelValues(g.Name, g.Stage).Set(on)
	}
}

// Handler serves /metrics.
type Handler struct {
	registry *metrics.Registry
	handler  http.Handler
	log      *slog.Logger
	warned   sync.Once // about deprecated metrics
}

// NewHandler returns a Handler of the metrics that gather collects from registry.
func NewHandler(registry *metrics.Registry, gather prometheus.Gatherer, log *slog.Logger) *Handler {
	return &Handler{registry: registry, handler: promhttp.HandlerFor(gather, promhttp.HandlerOpts{}), log: log}
}

// ServeHTTP implements http.Handler. The first request for deprecated metrics is logged.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.registry.Refresh()
	if names := h.registry.Deprecated(); len(names) > 0 {
		h.warned.Do(func() {
			h.log.Warn("/metrics shows deprecated metrics, which a later release hides", "metrics", strings.Join(names, " "))
		})
	}
	h.handler.ServeHTTP(w, r)
}
