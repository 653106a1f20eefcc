package fair

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what operators watch, under the names that dashboards know.
type metrics struct {
	rejected, dispatched  *prometheus.CounterVec
	inQueue, executing    *prometheus.GaugeVec
	seats                 *prometheus.GaugeVec
	waited                *prometheus.HistogramVec
	nominal, lower, upper *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	const prefix = "apiserver_flowcontrol_"
	labels := []string{"flow_schema", "priority_level"}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	}
	m := &metrics{
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "rejected_requests_total", Help: "Requests that got no seat, by reason.",
		}, append(labels, "reason")),
		dispatched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "dispatched_requests_total", Help: "Requests that got their seats.",
		}, labels),
		inQueue:   gauge("current_inqueue_requests", "Requests that wait for seats.", labels...),
		executing: gauge("current_executing_requests", "Requests that hold seats, or need none.", labels...),
		seats:     gauge("current_executing_seats", "Seats in use.", labels...),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "request_wait_duration_seconds", Help: "Time that requests waited for seats.",
			Buckets: []float64{0, .005, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30},
		}, append(labels, "execute")),
		nominal: gauge("nominal_limit_seats", "Seats that are a level's own.", "priority_level"),
		lower:   gauge("lower_limit_seats", "Seats that a level does not lend.", "priority_level"),
		upper:   gauge("upper_limit_seats", "Seats that a level may use with those it borrows.", "priority_level"),
	}
	if reg != nil {
		reg.MustRegister(m.rejected, m.dispatched, m.inQueue, m.executing, m.seats, m.waited, m.nominal, m.lower, m.upper)
	}
	return m
}

func (m *metrics) level(l *level) {
	m.nominal.WithLabelValues(l.config.Name).Set(float64(l.nominal))
	m.lower.WithLabelValues(l.config.Name).Set(float64(l.kept))
	m.upper.WithLabelValues(l.config.Name).Set(float64(l.most))
}

func (m *metrics) forget(l *level) {
	for _, v := range []*prometheus.GaugeVec{m.nominal, m.lower, m.upper} {
		v.DeleteLabelValues(l.config.Name)
	}
}

// counters are the metrics of one schema.
type counters struct {
	dispatched               prometheus.Counter
	queued, executing, seats prometheus.Gauge
	waited, gaveUp           prometheus.Observer
	rejected                 *prometheus.CounterVec
}

func (m *metrics) of(schema, level string) counters {
	return counters{
		dispatched: m.dispatched.WithLabelValues(schema, level),
		queued:     m.inQueue.WithLabelValues(schema, level),
		executing:  m.executing.WithLabelValues(schema, level),
		seats:      m.seats.WithLabelValues(schema, level),
		waited:     m.waited.WithLabelValues(schema, level, strconv.FormatBool(true)),
		gaveUp:     m.waited.WithLabelValues(schema, level, strconv.FormatBool(false)),
		rejected:   m.rejected.MustCurryWith(prometheus.Labels{"flow_schema": schema, "priority_level": level}),
	}
}

func (c *counters) begin(seats int, waited time.Duration) {
	c.dispatched.Inc()
	c.executing.Inc()
	c.seats.Add(float64(seats))
	c.waited.Observe(waited.Seconds())
}

func (c *counters) end(seats int) {
	c.executing.Dec()
	c.seats.Sub(float64(seats))
}

// refuse counts a request that got no seat, and returns why as an error.
func (c *counters) refuse(why Reason, waited time.Duration) error {
	c.rejected.WithLabelValues(string(why)).Inc()
	c.gaveUp.Observe(waited.Seconds())
	return why
}
