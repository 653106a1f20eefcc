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
	logInterval   = time.Minute      // losses of a sink are logged at most this often
	unhealthyTime = time.Minute      // Check fails for this time after a loss
	slowWrite     = 10 * time.Second // Check fails if a Sink.Write takes longer
)

// counters are the metrics of a Log, under the names of kube-apiserver.
type counters struct {
	events, rejected *prometheus.CounterVec
	levels           *prometheus.CounterVec
	errors           *prometheus.CounterVec

	event prometheus.Counter
}

func newCounters() counters {
	of := metrics.For(nil) // not registered: the caller of Open registers the Log
	c := counters{
		events:   of.Counters(metrics.Family{Name: "apiserver_audit_event_total", Help: "Audit events that were generated and passed to the sinks."}),
		rejected: of.Counters(metrics.Family{Name: "apiserver_audit_requests_rejected_total", Help: "Requests that were rejected because they could not be recorded. Always 0: the server does not reject them."}),
		levels:   of.Counters(metrics.Family{Name: "apiserver_audit_level_total", Help: "Requests by their level in the audit policy.", Labels: []string{"level"}}),
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

// Check is a health check. It fails if the last batch of a sink failed, if a sink
// has been writing the same batch for more than ten seconds, or if events were lost in
// the last minute.
func (l *Log) Check(context.Context) error {
	var errs []error
	for _, q := range l.queues {
		if err := q.state.health(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// nameOf returns the name of a sink in metrics and messages.
func nameOf(s Sink) string {
	switch s.(type) {
	case *File, Writer:
		return "log"
	case *Webhook:
		return "webhook"
	}
	return fmt.Sprintf("%T", s)
}

// state is the health of a sink, and counts and logs its losses.
type state struct {
	sink   string
	now    func() time.Time
	errors prometheus.Counter
	logger *slog.Logger

	mu       sync.Mutex // guards the fields below
	count    uint64     // lost events
	lastLoss time.Time
	lastErr  error     // reason of the last loss
	failing  bool      // the last batch failed
	started  time.Time // start of the running Sink.Write; zero if none is running
	loggedAt time.Time // when losses were last logged
	logged   uint64    // value of count at loggedAt
}

// begin records the start of Sink.Write.
func (s *state) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = s.now()
}

// end records the result of Sink.Write for a batch of count events.
func (s *state) end(count int, err error) {
	s.mu.Lock()
	s.started = time.Time{}
	recovered := s.failing && err == nil
	s.failing = err != nil
	total := s.count
	s.mu.Unlock()
	if recovered {
		s.logger.Info("audit sink recovered", "sink", s.sink, "lost", total)
	}
	if err != nil {
		s.lost(count, err)
	}
}

// lost counts n lost events, and logs them if logInterval has passed since the
// last log line.
func (s *state) lost(n int, why error) {
	s.errors.Add(float64(n))
	s.mu.Lock()
	now := s.now()
	s.count += uint64(n)
	s.lastLoss, s.lastErr = now, why
	due := s.loggedAt.IsZero() || now.Sub(s.loggedAt) >= logInterval
	total, fresh := s.count, s.count-s.logged
	if due {
		s.loggedAt, s.logged = now, s.count
	}
	s.mu.Unlock()
	if due {
		s.logger.Error("audit events lost", "sink", s.sink, "events", fresh, "total", total, "error", why)
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
	case s.failing || !s.lastLoss.IsZero() && now.Sub(s.lastLoss) < unhealthyTime:
		return fmt.Errorf("audit: sink %q lost %d events: %w", s.sink, s.count, s.lastErr)
	case !s.started.IsZero() && now.Sub(s.started) > slowWrite:
		return fmt.Errorf("audit: sink %q has been writing one batch for %s", s.sink, now.Sub(s.started))
	}
	return nil
}
