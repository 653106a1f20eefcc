package matcher

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/internal/metrics"
)

// Figures are what operators watch of the match conditions of webhooks or policies, under the
// names that dashboards know. Plugins that make them over one Registerer share them.
type Figures struct {
	kind, sort     string
	took           *prometheus.HistogramVec
	failed, passed *prometheus.CounterVec
}

// NewFigures returns those of a kind, webhook or policy, and of a sort of it as metrics name
// it.
func NewFigures(s *metrics.Set, kind, sort string) *Figures {
	labels := []string{"name", "kind", "type", "operation"}
	return &Figures{
		kind: kind, sort: sort,
		took: s.Histograms(metrics.Family{
			Name: "apiserver_admission_match_condition_evaluation_seconds", Help: "Time to evaluate the match conditions of a webhook or policy, in seconds.",
			Labels: labels, Buckets: []float64{.001, .005, .01, .025, .1, .2, .25},
		}),
		failed: s.Counters(metrics.Family{
			Name: "apiserver_admission_match_condition_evaluation_errors_total", Help: "Evaluations of the match conditions of a webhook or policy that failed.", Labels: labels,
		}),
		passed: s.Counters(metrics.Family{
			Name: "apiserver_admission_match_condition_exclusions_total", Help: "Requests that a webhook or policy was not asked about, since a match condition of it was not true.", Labels: labels,
		}),
	}
}

// Observe counts an evaluation: whether the conditions are true, or why nobody knows.
func (f *Figures) Observe(name string, op admission.Operation, took time.Duration, ok bool, err error) {
	labels := []string{name, f.kind, f.sort, string(op)}
	f.took.WithLabelValues(labels...).Observe(took.Seconds())
	switch {
	case err != nil:
		f.failed.WithLabelValues(labels...).Inc()
	case !ok:
		f.passed.WithLabelValues(labels...).Inc()
	}
}

// Forget drops what is told of a name.
func (f *Figures) Forget(name string) {
	gone := prometheus.Labels{"name": name, "kind": f.kind, "type": f.sort}
	f.took.DeletePartialMatch(gone)
	f.failed.DeletePartialMatch(gone)
	f.passed.DeletePartialMatch(gone)
}
