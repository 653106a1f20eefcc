package aggregator

import "github.com/prometheus/client_golang/prometheus"

// metrics are what operators watch, under the names that dashboards know. Labels come
// from APIServices alone.
type metrics struct {
	unavailable *prometheus.GaugeVec
	changes     *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		unavailable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aggregator_unavailable_apiservice", Help: "1 for each APIService that is not available, else 0.",
		}, []string{"name"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggregator_unavailable_apiservice_total", Help: "How often APIServices became unavailable, and why.",
		}, []string{"name", "reason"}),
	}
	reg.MustRegister(m.unavailable, m.changes)
	return m
}

// tell notes what a look at a service found; turned says that it was another state before.
func (m *metrics) tell(name string, s state, turned bool) {
	if s.status == statusTrue {
		m.unavailable.WithLabelValues(name).Set(0)
		return
	}
	m.unavailable.WithLabelValues(name).Set(1)
	if turned {
		m.changes.WithLabelValues(name, s.reason).Inc()
	}
}

// forget drops what is told of a service that is gone.
func (m *metrics) forget(name string) {
	m.unavailable.DeleteLabelValues(name)
	m.changes.DeletePartialMatch(prometheus.Labels{"name": name})
}
