package conversion

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
)

// Sorts of failures.
const (
	callFailure      = "conversion_webhook_call_failure"
	malformedFailure = "conversion_webhook_malformed_response_failure"
	partialFailure   = "conversion_webhook_partial_response_failure"
	invalidFailure   = "conversion_webhook_invalid_converted_object_failure"
)

// counts are what operators watch, under the names that dashboards know. Labels come
// from definitions alone.
type counts struct {
	ending   sync.RWMutex // held for writing while a Webhook ends
	crd      *prometheus.HistogramVec
	duration *prometheus.HistogramVec
	requests *prometheus.CounterVec
}

func newCounts(s *metrics.Set) *counts {
	result := []string{"result", "failure_type"}
	return &counts{
		crd: s.Histograms(metrics.Family{
			Name: "apiserver_crd_conversion_webhook_duration_seconds", Help: "Time to convert objects of a definition by its webhook, in seconds.",
			Labels: []string{"crd_name", "from_version", "to_version", "succeeded"}, Buckets: prometheus.ExponentialBuckets(.001, 2, 15),
		}),
		duration: s.Histograms(metrics.Family{
			Name: "apiserver_conversion_webhook_duration_seconds", Help: "Time to ask a conversion webhook, in seconds.",
			Labels: result, Buckets: []float64{.005, .02, .1, .5, 1, 2.5, 10, 25},
		}),
		requests: s.Counters(metrics.Family{Name: "apiserver_conversion_webhook_request_total", Help: "Calls of conversion webhooks, by how they ended.", Labels: result}),
	}
}

func (m *counts) observe(h *Webhook, to *resource.Version, from string, took time.Duration, failed *failure) {
	result, sort, succeeded := "success", "", "true"
	if failed != nil {
		result, sort, succeeded = "failure", failed.sort, "false"
	}
	m.duration.WithLabelValues(result, sort).Observe(took.Seconds())
	m.requests.WithLabelValues(result, sort).Inc()
	if to.Version(from) == nil {
		from = "other" // of an older definition
	}
	m.ending.RLock()
	defer m.ending.RUnlock()
	if !h.ended {
		m.crd.WithLabelValues(h.crd, from, to.Name, succeeded).Observe(took.Seconds())
	}
}

// end drops what is told of a definition whose state a webhook was of: the next state may
// have other versions.
func (m *counts) end(h *Webhook) {
	m.ending.Lock()
	defer m.ending.Unlock()
	h.ended = true
	m.crd.DeletePartialMatch(prometheus.Labels{"crd_name": h.crd})
}
