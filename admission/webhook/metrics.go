package webhook

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what operators watch, under the names that dashboards know. Both plugins
// of a server share them.
type metrics struct {
	duration   *prometheus.HistogramVec
	requests   *prometheus.CounterVec
	rejections *prometheus.CounterVec
	failedOpen *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (m metrics, err error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	if m.duration, err = register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "apiserver_admission_webhook_admission_duration_seconds", Help: "Time to ask an admission webhook, in seconds.",
		Buckets: []float64{.005, .025, .1, .5, 1, 2.5, 10, 25},
	}, []string{"name", "type", "operation", "rejected"})); err != nil {
		return m, err
	}
	if m.requests, err = register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_admission_webhook_request_total", Help: "Calls of admission webhooks, by HTTP code and whether the request was rejected.",
	}, []string{"name", "type", "operation", "code", "rejected"})); err != nil {
		return m, err
	}
	if m.rejections, err = register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_admission_webhook_rejection_count", Help: "Requests that an admission webhook ended, by why: it refused (no_error), it could not be called, or the server failed.",
	}, []string{"name", "type", "operation", "error_type", "rejection_code"})); err != nil {
		return m, err
	}
	m.failedOpen, err = register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_admission_webhook_fail_open_count", Help: "Calls of admission webhooks that failed and were passed over.",
	}, []string{"name", "type"}))
	return m, err
}

// register registers a collector, or returns the one that is there.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) (C, error) {
	err := reg.Register(c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		if same, ok := twice.ExistingCollector.(C); ok {
			return same, nil
		}
	}
	return c, err
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

func (m *metrics) observe(o outcome) {
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
