package matcher

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/internal/metrics"
)

// Figures are the metrics of match conditions of webhooks or policies, under the names of kube-apiserver.
// Figures of the same Registerer share the metric families.
type Figures struct {
	kind, sort     string
	took           *prometheus.HistogramVec
	failed, passed *prometheus.CounterVec
}

// NewFigures returns the metrics for a kind, webhook or policy, and a type, such as validating.
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
			Name: "apiserver_admission_match_condition_exclusions_total", Help: "Requests that a match condition excluded from a webhook or policy.", Labels: labels,
		}),
	}
}

// Observe counts an evaluation. ok reports whether all conditions are true; err is the error if they could not be
// evaluated.
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

// Forget deletes the series of a webhook or policy.
func (f *Figures) Forget(name string) {
	gone := prometheus.Labels{"name": name, "kind": f.kind, "type": f.sort}
	f.took.DeletePartialMatch(gone)
	f.failed.DeletePartialMatch(gone)
	f.passed.DeletePartialMatch(gone)
}
