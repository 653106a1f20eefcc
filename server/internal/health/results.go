package health

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/wellknown"
)

// results has the metrics of the health checks that probes requested. They have their own registry,
// because they are read more often than other metrics. Reading them runs no check.
type results struct {
	handler http.Handler
	last    *prometheus.GaugeVec
	runs    *prometheus.CounterVec
}

func newResults(p names.Profile) *results {
	reg := prometheus.NewRegistry()
	set := metrics.For(reg)
	return &results{
		handler: promhttp.HandlerFor(reg, promhttp.HandlerOpts{}),
		last: set.Gauges(metrics.Family{
			Name: p.Wire(wellknown.HealthMetric), Help: "1 if the health check succeeded when it last ran, else 0.", Stability: metrics.Stable, Labels: []string{"name", "type"},
		}),
		runs: set.Counters(metrics.Family{
			Name: p.Wire(wellknown.HealthRunsMetric), Help: "Runs of health checks by result.", Stability: metrics.Stable, Labels: []string{"name", "status", "type"},
		}),
	}
}

// record counts a run of a check.
func (r *results) record(endpoint, name string, err error) {
	success, status := 1.0, "success"
	if err != nil {
		success, status = 0, "error"
	}
	r.last.WithLabelValues(name, endpoint).Set(success)
	r.runs.WithLabelValues(name, status, endpoint).Inc()
}
