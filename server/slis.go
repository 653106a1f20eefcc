package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// slis are what became of the health checks, as /metrics/slis shows it: apart
// from the other metrics, to be read often.
type slis struct {
	handler http.Handler
	last    *prometheus.GaugeVec
	runs    *prometheus.CounterVec
}

func newSLIs() *slis {
	m := &slis{
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck", Help: "1 if the health check last succeeded, else 0.",
		}, []string{"name", "type"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubernetes_healthchecks_total", Help: "Runs of health checks by what became of them.",
		}, []string{"name", "status", "type"}),
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(m.last, m.runs)
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

// serveSLIs runs all checks and shows what became of them, now and since the
// start.
func (s *Server) serveSLIs(w *response, r *request) {
	for _, endpoint := range []string{"healthz", "livez", "readyz"} {
		for _, c := range s.checksOf(endpoint) {
			s.slis.record(endpoint, c.name, c.run(r.http.Context()))
		}
	}
	s.slis.handler.ServeHTTP(w, r.http)
}
