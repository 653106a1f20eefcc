package conversion

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
)

// The values of the label failure_type.
const (
	callFailure      = "conversion_webhook_call_failure"
	malformedFailure = "conversion_webhook_malformed_response_failure"
	partialFailure   = "conversion_webhook_partial_response_failure"
	invalidFailure   = "conversion_webhook_invalid_converted_object_failure"
)

// counts has the metrics, with the names that dashboards use. Label values come from definitions
// only.
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

// observe counts a review. from is the version of the objects before the conversion.
func (m *counts) observe(h *Webhook, to *resource.Version, from string, took time.Duration, failed *failure) {
	result, kind, succeeded := "success", "", "true"
	if failed != nil {
		result, kind, succeeded = "failure", failed.kind, "false"
	}
	m.duration.WithLabelValues(result, kind).Observe(took.Seconds())
	m.requests.WithLabelValues(result, kind).Inc()
	if to.Version(from) == nil {
		from = "other" // a version of an older definition
	}
	m.ending.RLock()
	defer m.ending.RUnlock()
	if !h.ended {
		m.crd.WithLabelValues(h.crd, from, to.Name, succeeded).Observe(took.Seconds())
	}
}

// end removes the series of a definition, because its next state may have other versions. Later
// observations of the same Webhook do not create them again.
func (m *counts) end(h *Webhook) {
	m.ending.Lock()
	defer m.ending.Unlock()
	h.ended = true
	m.crd.DeletePartialMatch(prometheus.Labels{"crd_name": h.crd})
}
