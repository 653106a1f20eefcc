package workqueue

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
)

// counts are the metrics of one queue, under the names that client-go uses.
type counts struct {
	added, retried prometheus.Counter
	waited, worked prometheus.Observer
	states         *states
}

func newCounts(to prometheus.Registerer, name string) (*counts, error) {
	s, labels, seconds := metrics.For(to), []string{"name"}, prometheus.ExponentialBuckets(10e-9, 10, 10)
	counters := func(name, help string) *prometheus.CounterVec {
		return s.Counters(metrics.Family{Name: name, Help: help, Stability: metrics.Beta, Labels: labels})
	}
	histograms := func(name, help string) *prometheus.HistogramVec {
		return s.Histograms(metrics.Family{Name: name, Help: help, Stability: metrics.Beta, Labels: labels, Buckets: seconds})
	}
	desc := func(name, help string) *prometheus.Desc {
		return s.Desc(metrics.Family{Name: name, Help: help, Stability: metrics.Beta, Labels: labels})
	}
	c := &counts{
		added:   counters("workqueue_adds_total", "Keys that became due, by queue.").WithLabelValues(name),
		retried: counters("workqueue_retries_total", "Keys that became due again since work on them failed.").WithLabelValues(name),
		waited:  histograms("workqueue_queue_duration_seconds", "Time that keys were due until work on them began, in seconds.").WithLabelValues(name),
		worked:  histograms("workqueue_work_duration_seconds", "Time that work on a key took, in seconds.").WithLabelValues(name),
		states: metrics.Add(s, &states{
			depth:      desc("workqueue_depth", "Keys that are due and that nobody works on yet."),
			unfinished: desc("workqueue_unfinished_work_seconds", "Time that work under way has taken so far, all together, in seconds."),
			longest:    desc("workqueue_longest_running_processor_seconds", "Time that the oldest work under way has taken so far, in seconds."),
			queues:     map[*Queue]string{},
		}),
	}
	return c, s.Err()
}

// states is a collector of the current state of queues. Queues with the same name are added up.
type states struct {
	depth, unfinished, longest *prometheus.Desc

	mu     sync.Mutex // guards queues; acquired before Queue.mu
	queues map[*Queue]string
}

func (s *states) add(q *Queue, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[q] = name
}

func (s *states) remove(q *Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.queues, q)
}

// Describe implements prometheus.Collector.
func (s *states) Describe(to chan<- *prometheus.Desc) {
	to <- s.depth
	to <- s.unfinished
	to <- s.longest
}

// state is the combined state of all queues of one name.
type state struct {
	depth               int
	unfinished, longest time.Duration
}

// Collect implements prometheus.Collector.
func (s *states) Collect(to chan<- prometheus.Metric) {
	all, now := map[string]state{}, time.Now()
	s.mu.Lock()
	for q, name := range s.queues {
		all[name] = q.state(all[name], now)
	}
	s.mu.Unlock()
	for name, st := range all {
		gauge := func(d *prometheus.Desc, v float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
		gauge(s.depth, float64(st.depth))
		gauge(s.unfinished, st.unfinished.Seconds())
		gauge(s.longest, st.longest.Seconds())
	}
}

// state returns st with the state of the queue added.
func (q *Queue) state(st state, now time.Time) state {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks.waiting.Scan(func(t *task) bool {
		if t.due.After(now) {
			return false
		}
		st.depth++
		return true
	})
	for t := range q.tasks.working {
		took := now.Sub(t.begun)
		st.unfinished += took
		st.longest = max(st.longest, took)
	}
	return st
}
