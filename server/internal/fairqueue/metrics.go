package fairqueue

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
)

// prefix is the prefix of all metric names.
const prefix = "apiserver_flowcontrol_"

// counts has the metrics of a Controller, with the names that dashboards for API priority and
// fairness use.
type counts struct {
	rejected, dispatched   *prometheus.CounterVec
	inQueue, executing     *prometheus.GaugeVec
	queuedSeats, seats     *prometheus.GaugeVec
	concurrency            *prometheus.GaugeVec
	waited, executed       *prometheus.HistogramVec
	estimated, queueLength *prometheus.HistogramVec

	nominal, lower, upper, limit *prometheus.GaugeVec // of a level
}

func newCounts(s *metrics.Set, free func(emit func(float64, ...string))) *counts {
	var (
		level    = []string{"priority_level"}
		labels   = []string{"flow_schema", "priority_level"}
		and      = func(label string) []string { return []string{"flow_schema", "priority_level", label} }
		seconds  = []float64{0, .005, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30}
		counters = func(name, help string, labels []string) *prometheus.CounterVec {
			return s.Counters(metrics.Family{Name: prefix + name, Help: help, Stability: metrics.Beta, Labels: labels})
		}
		gauges = func(st metrics.Stability, name, help string, labels []string) *prometheus.GaugeVec {
			return s.Gauges(metrics.Family{Name: prefix + name, Help: help, Stability: st, Labels: labels})
		}
		old = func(since int, name, help string, labels []string) *prometheus.GaugeVec {
			return s.Gauges(metrics.Family{Name: prefix + name, Help: help, Deprecated: since, Labels: labels})
		}
		histograms = func(st metrics.Stability, name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
			return s.Histograms(metrics.Family{Name: prefix + name, Help: help, Stability: st, Labels: labels, Buckets: buckets})
		}
	)
	s.Read(metrics.Family{Name: prefix + "current_limit_seats", Help: "Seats that a level may use now: its own, and what no other level uses or keeps.", Labels: level},
		prometheus.GaugeValue, free)
	return &counts{
		rejected:    counters("rejected_requests_total", "Requests that got no seat, by reason.", and("reason")),
		dispatched:  counters("dispatched_requests_total", "Requests that got their seats.", labels),
		inQueue:     gauges(metrics.Beta, "current_inqueue_requests", "Requests that wait for seats.", labels),
		executing:   gauges(metrics.Beta, "current_executing_requests", "Requests that hold seats, or need none.", labels),
		queuedSeats: gauges(metrics.Alpha, "current_inqueue_seats", "Seats that requests wait for.", labels),
		seats:       gauges(metrics.Beta, "current_executing_seats", "Seats in use.", labels),
		concurrency: old(31, "request_concurrency_in_use", "Seats in use; see current_executing_seats.", labels),
		waited:      histograms(metrics.Beta, "request_wait_duration_seconds", "Time that requests waited for seats.", seconds, and("execute")),
		executed:    histograms(metrics.Alpha, "request_execution_seconds", "Time that requests held seats; of watches, until the stream began.", seconds, and("type")),
		estimated:   histograms(metrics.Alpha, "work_estimated_seats", "Seats that requests take, by what they are about.", []float64{1, 2, 4, 8, 16, 32, 64, 100}, labels),
		queueLength: histograms(metrics.Alpha, "request_queue_length_after_enqueue", "Length of a queue as each request finds it that enters, itself counted.",
			[]float64{0, 10, 25, 50, 100, 250, 500, 1000}, labels),
		nominal: gauges(metrics.Beta, "nominal_limit_seats", "Seats that are a level's own.", level),
		lower:   gauges(metrics.Alpha, "lower_limit_seats", "Seats that a level does not lend.", level),
		upper:   gauges(metrics.Alpha, "upper_limit_seats", "Seats that a level may use with those it borrows.", level),
		limit:   old(30, "request_concurrency_limit", "Seats that are a level's own; see nominal_limit_seats.", level),
	}
}

// emitCurrentLimits emits the number of seats that each level may use now.
func (c *Controller) emitCurrentLimits(emit func(float64, ...string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.levels {
		if l.config.Name == "" || l.config.Exempt {
			continue // removed, or not limited
		}
		emit(float64(min(l.maxInUse, max(l.inUse, l.kept)+max(0, c.capacity-c.reserved))), l.config.Name)
	}
}

// level sets the limits of a level.
func (m *counts) level(l *level) {
	m.nominal.WithLabelValues(l.config.Name).Set(float64(l.nominal))
	m.limit.WithLabelValues(l.config.Name).Set(float64(l.nominal))
	m.lower.WithLabelValues(l.config.Name).Set(float64(l.kept))
	m.upper.WithLabelValues(l.config.Name).Set(float64(l.maxInUse))
}

// forget removes the limits of a level.
func (m *counts) forget(l *level) {
	for _, v := range []*prometheus.GaugeVec{m.nominal, m.limit, m.lower, m.upper} {
		v.DeleteLabelValues(l.config.Name)
	}
}

// forgetSchemas removes the series of schemas of the old plan that the new plan lacks, because the
// names of schemas are names of objects, and their number is not bounded over time.
func (m *counts) forgetSchemas(old, now *plan) {
	for _, s := range old.schemas {
		if slices.ContainsFunc(now.schemas, func(n *schema) bool { return n.Name == s.Name && n.Level == s.Level }) {
			continue
		}
		s.counters() // create them now, so that a request that still has the schema cannot create them after the removal
		gone := prometheus.Labels{"flow_schema": s.Name, "priority_level": s.Level}
		for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
			m.rejected, m.dispatched, m.inQueue, m.executing, m.queuedSeats, m.seats, m.concurrency, m.waited, m.executed, m.estimated, m.queueLength,
		} {
			v.DeletePartialMatch(gone)
		}
	}
}

// counters has the metrics of a schema.
type counters struct {
	dispatched                   prometheus.Counter
	queued, executing            prometheus.Gauge
	queuedSeats, seats           prometheus.Gauge
	concurrency                  prometheus.Gauge
	waited, gaveUp               prometheus.Observer
	executed, started            prometheus.Observer // started is for watches
	estimatedSeats, queueLengths prometheus.Observer
	rejected                     *prometheus.CounterVec
}

// countersFor returns the metrics of a schema.
func (m *counts) countersFor(schema, level string) counters {
	return counters{
		dispatched:     m.dispatched.WithLabelValues(schema, level),
		queued:         m.inQueue.WithLabelValues(schema, level),
		executing:      m.executing.WithLabelValues(schema, level),
		queuedSeats:    m.queuedSeats.WithLabelValues(schema, level),
		seats:          m.seats.WithLabelValues(schema, level),
		concurrency:    m.concurrency.WithLabelValues(schema, level),
		waited:         m.waited.WithLabelValues(schema, level, strconv.FormatBool(true)),
		gaveUp:         m.waited.WithLabelValues(schema, level, strconv.FormatBool(false)),
		executed:       m.executed.WithLabelValues(schema, level, "regular"),
		started:        m.executed.WithLabelValues(schema, level, "watch"),
		estimatedSeats: m.estimated.WithLabelValues(schema, level),
		queueLengths:   m.queueLength.WithLabelValues(schema, level),
		rejected:       m.rejected.MustCurryWith(prometheus.Labels{"flow_schema": schema, "priority_level": level}),
	}
}

// wait counts a request that entered a queue.
func (c *counters) wait(w *waiter) {
	c.queued.Inc()
	c.queuedSeats.Add(float64(w.seats))
	c.queueLengths.Observe(float64(len(w.queue.waiting)))
}

// leave counts a request that left its queue, with seats or without.
func (c *counters) leave(w *waiter) {
	c.queued.Dec()
	c.queuedSeats.Sub(float64(w.seats))
}

// begin counts a request that got its seats.
func (c *counters) begin(seats int, waited time.Duration) {
	c.dispatched.Inc()
	c.executing.Inc()
	c.seats.Add(float64(seats))
	c.concurrency.Add(float64(seats))
	c.estimatedSeats.Observe(float64(max(1, seats)))
	c.waited.Observe(waited.Seconds())
}

// end counts a request that released its seats.
func (c *counters) end(seats int, watch bool, took time.Duration) {
	c.executing.Dec()
	c.seats.Sub(float64(seats))
	c.concurrency.Sub(float64(seats))
	if watch {
		c.started.Observe(took.Seconds())
		return
	}
	c.executed.Observe(took.Seconds())
}

// refuse counts a request that got no seat, and returns the reason as an error.
func (c *counters) refuse(why Reason, waited time.Duration) error {
	c.rejected.WithLabelValues(string(why)).Inc()
	c.gaveUp.Observe(waited.Seconds())
	return why
}
