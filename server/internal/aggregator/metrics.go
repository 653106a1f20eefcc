package aggregator

import (
	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
)

// meters are the metrics of an Aggregator, with the names that dashboards expect. The only label values from outside
// are the names of APIServices.
type meters struct {
	unavailable *prometheus.GaugeVec
	changes     *prometheus.CounterVec
}

func newMeters(to prometheus.Registerer) (*meters, error) {
	set := metrics.For(to)
	m := &meters{
		unavailable: set.Gauges(metrics.Family{
			Name: "aggregator_unavailable_apiservice", Help: "1 for each APIService that is not available, else 0.", Labels: []string{"name"},
		}),
		changes: set.Counters(metrics.Family{
			Name: "aggregator_unavailable_apiservice_total", Help: "How often APIServices became unavailable, and why.", Labels: []string{"name", "reason"},
		}),
	}
	return m, set.Err()
}

// set records the result of a probe.
func (m *meters) set(name string, s state) {
	value := 0.0
	if s.status != statusTrue {
		value = 1
	}
	m.unavailable.WithLabelValues(name).Set(value)
}

// countChange counts a change of the state of an APIService.
func (m *meters) countChange(name string, s state) {
	if s.status != statusTrue {
		m.changes.WithLabelValues(name, s.reason).Inc()
	}
}

// forget removes the metrics of a deleted APIService.
func (m *meters) forget(name string) {
	m.unavailable.DeleteLabelValues(name)
	m.changes.DeletePartialMatch(prometheus.Labels{"name": name})
}
