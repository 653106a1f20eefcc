package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
)

// counts are what operators watch, under the names that dashboards know. Both plugins
// of a server share them.
type counts struct {
	duration   *prometheus.HistogramVec
	requests   *prometheus.CounterVec
	rejections *prometheus.CounterVec
	failedOpen *prometheus.CounterVec
}

func newCounts(reg prometheus.Registerer) (counts, error) {
	s, labels := metrics.For(reg), func(more ...string) []string { return append([]string{"name", "type"}, more...) }
	m := counts{
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
	webhook, sort, operation string
	took                     time.Duration
	code                     int  // 0: none
	rejected                 bool // the request ended
	failedOpen               bool // it went on without an answer
	failure                  string
}

// maxCode is the label of every code above it, so that webhooks do not choose how many
// there are.
const maxCode = 600

func (m *counts) observe(o outcome) {
	code, rejected := strconv.Itoa(min(o.code, maxCode)), strconv.FormatBool(o.rejected)
	m.duration.WithLabelValues(o.webhook, o.sort, o.operation, rejected).Observe(o.took.Seconds())
	m.requests.WithLabelValues(o.webhook, o.sort, o.operation, code, rejected).Inc()
	if o.rejected {
		if o.failure != "no_error" {
			code = "0" // the webhook said none
		}
		m.rejections.WithLabelValues(o.webhook, o.sort, o.operation, o.failure, code).Inc()
	}
	if o.failedOpen {
		m.failedOpen.WithLabelValues(o.webhook, o.sort).Inc()
	}
}
