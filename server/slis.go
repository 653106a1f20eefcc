package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/metrics"
)

// slis are what became of the health checks that probes asked for, as
// /metrics/slis shows it: apart from the other metrics, to be read often, and
// thus without running any check.
type slis struct {
	handler http.Handler
	last    *prometheus.GaugeVec
	runs    *prometheus.CounterVec
}

func newSLIs(p names.Profile) *slis {
	reg := prometheus.NewRegistry()
	set := metrics.For(reg)
	m := &slis{
		last: set.Gauges(metrics.Family{
			Name: p.Wire(names.HealthMetric), Help: "1 if the health check last succeeded, else 0.", Stability: metrics.Stable, Labels: []string{"name", "type"},
		}),
		runs: set.Counters(metrics.Family{
			Name: p.Wire(names.HealthRunsMetric), Help: "Runs of health checks by what became of them.", Stability: metrics.Stable, Labels: []string{"name", "status", "type"},
		}),
	}
	m.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return m
}

func (m *slis) record(endpoint, name string, err error) {
	if err != nil {
		m.last.WithLabelValues(name, endpoint).Set(0)
		m.runs.WithLabelValues(name, "error", endpoint).Inc()
		return
	}
	m.last.WithLabelValues(name, endpoint).Set(1)
	m.runs.WithLabelValues(name, "success", endpoint).Inc()
}
