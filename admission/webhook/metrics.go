package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/internal/metrics"
)

// counts are what operators watch of the webhooks of a sort, under the names that dashboards
// know. Both plugins of a server share the families. Series are those of webhooks that there
// are.
type counts struct {
	sort       string // admit or validating, in metrics
	hooks      metrics.Named
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
			Name: "apiserver_admission_webhook_admission_duration_seconds", Help: "Time to ask an admission webhook, in seconds.", Stability: metrics.Stable,
			Labels: labels("operation", "rejected"), Buckets: []float64{.005, .025, .1, .5, 1, 2.5, 10, 25},
		}),
		requests: s.Counters(metrics.Family{
			Name: "apiserver_admission_webhook_request_total", Help: "Calls of admission webhooks, by HTTP code and whether the request was rejected.",
			Labels: labels("operation", "code", "rejected"),
		}),
		rejections: s.Counters(metrics.Family{
			Name: "apiserver_admission_webhook_rejection_count", Help: "Requests that an admission webhook ended, by why: it refused (no_error), it could not be called, or the server failed.",
			Labels: labels("operation", "error_type", "rejection_code"),
		}),
		failedOpen: s.Counters(metrics.Family{
			Name: "apiserver_admission_webhook_fail_open_count", Help: "Calls of admission webhooks that failed and were passed over.", Labels: labels(),
		}),
	}
	return m, s.Err()
}

// outcome is how a call ended.
type outcome struct {
	webhook, operation string
	took               time.Duration
	code               int  // 0: none
	rejected           bool // the request ended
	failedOpen         bool // it went on without an answer
	failure            string
}

// maxCode is the label of every code above it, so that webhooks do not choose how many
// there are.
const maxCode = 600

func (m *counts) observe(o outcome) {
	m.hooks.Count(o.webhook, func() {
		code, rejected := strconv.Itoa(min(o.code, maxCode)), strconv.FormatBool(o.rejected)
		m.duration.WithLabelValues(o.webhook, m.sort, o.operation, rejected).Observe(o.took.Seconds())
		m.requests.WithLabelValues(o.webhook, m.sort, o.operation, code, rejected).Inc()
		if o.rejected {
			if o.failure != "no_error" {
				code = "0" // the webhook said none
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

// show makes the webhooks of a list those that are told of. Configurations may have
// some of one name.
func (m *counts) show(list []*hook) {
	there := map[string]bool{}
	for _, h := range list {
		there[h.name] = true
	}
	m.hooks.Set(there, func(name string) {
		gone := prometheus.Labels{"name": name, "type": m.sort}
		m.duration.DeletePartialMatch(gone)
		m.requests.DeletePartialMatch(gone)
		m.rejections.DeletePartialMatch(gone)
		m.failedOpen.DeletePartialMatch(gone)
		m.conditions.Forget(name)
	})
}
