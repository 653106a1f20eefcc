package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
)

const (
	tellEvery = time.Minute      // how often one sink's losses are logged
	recent    = time.Minute      // for how long a loss makes Check fail
	slow      = 10 * time.Second // how long a sink may take for a batch until Check fails
)

// counters are the metrics of a Log, under the names that dashboards know.
type counters struct {
	events, rejected *prometheus.CounterVec
	levels           *prometheus.CounterVec
	errors           *prometheus.CounterVec

	event prometheus.Counter
}

func newCounters() counters {
	of := metrics.For(nil) // whoever has the Log registers it
	c := counters{
		events:   of.Counters(metrics.Family{Name: "apiserver_audit_event_total", Help: "Audit events that were made and handed to the sinks."}),
		rejected: of.Counters(metrics.Family{Name: "apiserver_audit_requests_rejected_total", Help: "Requests that were refused since they could not be recorded: none ever is."}),
		levels:   of.Counters(metrics.Family{Name: "apiserver_audit_level_total", Help: "Requests by the level that the audit policy gives them.", Labels: []string{"level"}}),
		errors:   of.Counters(metrics.Family{Name: "apiserver_audit_error_total", Help: "Audit events that did not reach a sink.", Labels: []string{"plugin"}}),
	}
	c.event = c.events.WithLabelValues()
	c.rejected.WithLabelValues()
	return c
}

func (c *counters) all() []prometheus.Collector {
	return []prometheus.Collector{c.events, c.rejected, c.levels, c.errors}
}

// Describe implements prometheus.Collector.
func (l *Log) Describe(to chan<- *prometheus.Desc) {
	for _, c := range l.counters.all() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (l *Log) Collect(to chan<- prometheus.Metric) {
	for _, c := range l.counters.all() {
		c.Collect(to)
	}
}

// Check is a health check: it fails while a sink fails, takes more than ten
// seconds for one batch, or has lost events in the last minute.
func (l *Log) Check(context.Context) error {
	var errs []error
	for _, q := range l.queues {
		if err := q.state.health(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// nameOf is how metrics and messages call a sink.
func nameOf(s Sink) string {
	switch s.(type) {
	case *File, Writer:
		return "log"
	case *Webhook:
		return "webhook"
	}
	return fmt.Sprintf("%T", s)
}

// state is how one sink does.
type state struct {
	sink   string
	now    func() time.Time
	errors prometheus.Counter
	logger *slog.Logger

	mu      sync.Mutex // guards the rest
	count   uint64     // events lost
	at      time.Time  // of the last loss
	why     error      // of the last loss
	failing bool       // the last batch failed
	since   time.Time  // when the sink got the batch that it has; zero: it has none
	told    time.Time  // when the log was told
	known   uint64     // losses that the log knows
}

func (s *state) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = s.now()
}

// end takes how the sink did with a batch.
func (s *state) end(count int, err error) {
	s.mu.Lock()
	s.since = time.Time{}
	recovered := s.failing && err == nil
	s.failing = err != nil
	total := s.count
	s.mu.Unlock()
	if recovered {
		s.logger.Info("audit events reach the sink again", "sink", s.sink, "lost", total)
	}
	if err != nil {
		s.lost(count, err)
	}
}

// lost counts events that do not get to the sink, and tells, now and then.
func (s *state) lost(n int, why error) {
	s.errors.Add(float64(n))
	s.mu.Lock()
	now := s.now()
	s.count += uint64(n)
	s.at, s.why = now, why
	tell := s.told.IsZero() || now.Sub(s.told) >= tellEvery
	total, fresh := s.count, s.count-s.known
	if tell {
		s.told, s.known = now, s.count
	}
	s.mu.Unlock()
	if tell {
		s.logger.Error("audit events are lost", "sink", s.sink, "events", fresh, "total", total, "error", why)
	}
}

func (s *state) dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *state) health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	switch {
	case s.failing || !s.at.IsZero() && now.Sub(s.at) < recent:
		return fmt.Errorf("audit: the sink %q lost %d events: %w", s.sink, s.count, s.why)
	case !s.since.IsZero() && now.Sub(s.since) > slow:
		return fmt.Errorf("audit: the sink %q has not taken a batch for %s", s.sink, now.Sub(s.since))
	}
	return nil
}
