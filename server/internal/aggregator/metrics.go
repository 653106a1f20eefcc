package aggregator

import (
	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
)

// figures are what operators watch, under the names that dashboards know. Labels come
// from APIServices alone.
type figures struct {
	unavailable *prometheus.GaugeVec
	changes     *prometheus.CounterVec
}

func newFigures(to prometheus.Registerer) (*figures, error) {
	set := metrics.For(to)
	m := &figures{
		unavailable: set.Gauges(metrics.Family{
			Name: "aggregator_unavailable_apiservice", Help: "1 for each APIService that is not available, else 0.", Labels: []string{"name"},
		}),
		changes: set.Counters(metrics.Family{
			Name: "aggregator_unavailable_apiservice_total", Help: "How often APIServices became unavailable, and why.", Labels: []string{"name", "reason"},
		}),
	}
	return m, set.Err()
}

// set notes what a look at a service found.
func (m *figures) set(name string, s state) {
	gone := 0.0
	if s.status != statusTrue {
		gone = 1
	}
	m.unavailable.WithLabelValues(name).Set(gone)
}

// turned notes that a service is in another state than before.
func (m *figures) turned(name string, s state) {
	if s.status != statusTrue {
		m.changes.WithLabelValues(name, s.reason).Inc()
	}
}

// forget drops what is told of a service that is gone.
func (m *figures) forget(name string) {
	m.unavailable.DeleteLabelValues(name)
	m.changes.DeletePartialMatch(prometheus.Labels{"name": name})
}
