package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/internal/metrics"
)

// counts are the metrics of mutating or validating webhooks, under the names of kube-apiserver. Both plugins
// of a server share the families. Only existing webhooks have series.
type counts struct {
	sort       string // admit or validating, in metrics
	hooks      metrics.NameFilter
	conditions *matcher.Figures

	duration   *prometheus.HistogramVec
	requests   *prometheus.CounterVec
	rejections *prometheus.CounterVec
	failedOpen *prometheus.CounterVec
}

func newCounts(reg prometheus.Registerer, sort string) (*counts, error) {
	s, labels := metrics.For(reg), func(more ...string) []string { return append([]string{"name", "type"}, more...) }
	m := &counts{
		sort: sort, conditions: matcher.NewFigures(s, "webhook", sort),
		duration: s.Histograms(metrics.Family{
			Name: "apiserver_admission_webhook_admission_duration_seconds", Help: "Time to call an admission webhook, in seconds.", Stability: metrics.Stable,
			Labels: labels("operation", "rejected"), Buckets: []float64{.005, .025, .1, .5, 1, 2.5, 10, 25},
		}),
		requests: s.Counters(metrics.Family{
			Name: "apiserver_admission_webhook_request_total", Help: "Calls of admission webhooks, by HTTP code and whether the request was rejected.",
			Labels: labels("operation", "code", "rejected"),
		}),
		rejections: s.Counters(metrics.Family{
			Name: "apiserver_admission_webhook_rejection_count", Help: "Requests rejected because of an admission webhook, by reason: it refused (no_error), the call failed, or the server failed.",
			Labels: labels("operation", "error_type", "rejection_code"),
		}),
		failedOpen: s.Counters(metrics.Family{
			Name: "apiserver_admission_webhook_fail_open_count", Help: "Calls of admission webhooks that failed and were ignored by the failure policy.", Labels: labels(),
		}),
	}
	return m, s.Err()
}

// outcome is the result of a call for metrics.
type outcome struct {
	webhook, operation string
	took               time.Duration
	code               int  // of HTTP; 0: the call did not happen
	rejected           bool // the request was refused
	failedOpen         bool // the failure was ignored
	failure            string
}

// maxCode is the largest value of the label code. Larger codes of a webhook are counted under it, to bound
// the number of series.
const maxCode = 600

func (m *counts) observe(o outcome) {
	m.hooks.Count(o.webhook, func() {
		code, rejected := strconv.Itoa(min(o.code, maxCode)), strconv.FormatBool(o.rejected)
		m.duration.WithLabelValues(o.webhook, m.sort, o.operation, rejected).Observe(o.took.Seconds())
		m.requests.WithLabelValues(o.webhook, m.sort, o.operation, code, rejected).Inc()
		if o.rejected {
			if o.failure != "no_error" {
				code = "0" // the webhook did not refuse
			}
			m.rejections.WithLabelValues(o.webhook, m.sort, o.operation, o.failure, code).Inc()
		}
		if o.failedOpen {
			m.failedOpen.WithLabelValues(o.webhook, m.sort).Inc()
		}
	})
}

// matched counts the evaluation of the match conditions of a webhook.
func (m *counts) matched(h *hook, op admission.Operation, took time.Duration, ok bool, err error) {
	m.hooks.Count(h.name, func() { m.conditions.Observe(h.name, op, took, ok, err) })
}

// show creates the series of the webhooks in the list, and deletes other series. Several
// webhooks may have the same name.
func (m *counts) show(list []*hook) {
	present := map[string]bool{}
	for _, h := range list {
		present[h.name] = true
	}
	m.hooks.Set(present, func(name string) {
		gone := prometheus.Labels{"name": name, "type": m.sort}
		m.duration.DeletePartialMatch(gone)
		m.requests.DeletePartialMatch(gone)
		m.rejections.DeletePartialMatch(gone)
		m.failedOpen.DeletePartialMatch(gone)
		m.conditions.Forget(name)
	})
}
