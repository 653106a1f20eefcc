package admission

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
)

// counts are the metrics of a chain, under the names of kube-apiserver.
type counts struct{ steps, plugins *prometheus.HistogramVec }

// The phases in metrics.
const (
	admit    = "admit"
	validate = "validate"
)

func newCounts(to prometheus.Registerer) (counts, error) {
	s, buckets := metrics.For(to), []float64{.005, .025, .1, .5, 1, 2.5}
	c := counts{
		steps: s.Histograms(metrics.Family{
			Name: "apiserver_admission_step_admission_duration_seconds", Help: "Time that a phase of admission took, in seconds, by operation and whether it refused.",
			Stability: metrics.Stable, Labels: []string{"type", "operation", "rejected"}, Buckets: buckets,
		}),
		plugins: s.Histograms(metrics.Family{
			Name: "apiserver_admission_controller_admission_duration_seconds", Help: "Time that an admission plugin took in a phase, in seconds, by operation and whether it refused.",
			Stability: metrics.Stable, Labels: []string{"name", "type", "operation", "rejected"}, Buckets: buckets,
		}),
	}
	return c, s.Err()
}

// timing observes durations by operation and whether the request was refused. It keeps the observer of each
// combination, created on first use, because WithLabelValues is slow. A nil timing observes nothing.
type timing struct {
	in      *prometheus.HistogramVec
	labels  []string // the labels before operation and rejected
	handles [4][2]atomic.Pointer[prometheus.Observer]
}

// operations are the indexes of the rows of timing.handles.
var operations = []Operation{Create, Update, Delete, Connect}

func (t *timing) observe(op Operation, err error, took time.Duration) {
	if t == nil {
		return
	}
	row, column := slices.Index(operations, op), 0
	if err != nil {
		column = 1
	}
	if row < 0 {
		return
	}
	at := &t.handles[row][column]
	h := at.Load()
	if h == nil {
		made := t.in.WithLabelValues(append(t.labels[:len(t.labels):len(t.labels)], string(op), strconv.FormatBool(err != nil))...)
		h = &made
		at.Store(h)
	}
	(*h).Observe(took.Seconds())
}
