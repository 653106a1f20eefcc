// Package metrics makes the families that a server shows at /metrics: with the class of
// their stability in front of the help text, and without those that a release hides.
//
// A family is a Family in the code of the part that counts, which makes it with a Set:
//
//	set := metrics.For(registerer)
//	calls := set.Counters(metrics.Family{Name: "calls_total", Help: "Calls, by result.", Labels: []string{"result"}})
//	err := set.Err()
//
// Two parts may make the same family over one Registerer; they share it.
package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/release"
)

// Stability is the class of a family: what its name and labels promise.
type Stability int

// The classes. A family lives on after its deprecation for no release, one, or three;
// then it is hidden.
const (
	Alpha Stability = iota
	Beta
	Stable
)

func (s Stability) String() string { return [...]string{"ALPHA", "BETA", "STABLE"}[s] }

// window is for how many releases a deprecated family is still shown.
func (s Stability) window() int { return [...]int{0, 1, 3}[s] }

// Family is what one family is called and means.
type Family struct {
	Name, Help string
	Stability  Stability
	Deprecated int // the minor release of 1 that deprecated it; 0: none has
	Labels     []string
	Buckets    []float64 // of a histogram
}

// help is the text of the family in a release.
func (f *Family) help(release int) string {
	notice := ""
	if f.deprecated(release) {
		notice = fmt.Sprintf("(Deprecated since 1.%d.0) ", f.Deprecated)
	}
	return "[" + f.Stability.String() + "] " + notice + f.Help
}

func (f *Family) deprecated(release int) bool { return f.Deprecated > 0 && f.Deprecated <= release }

// hidden reports whether a release does not show the family unless it is asked to.
func (f *Family) hidden(release int) bool {
	return f.deprecated(release) && release >= f.Deprecated+f.Stability.window()
}

// Set makes the families of one part of a server. One goroutine uses it.
type Set struct {
	to  prometheus.Registerer
	err error
}

// For returns a Set that registers what it makes; nil: nowhere.
func For(to prometheus.Registerer) *Set { return &Set{to: to} }

// Err says which families could not be registered. They count all the same.
func (s *Set) Err() error { return s.err }

// release is the one whose families are made.
func (s *Set) release() int {
	if r, ok := s.to.(*Registry); ok {
		return r.release
	}
	return release.Newest.Minor()
}

// Counters makes counters.
func (s *Set) Counters(f Family) *prometheus.CounterVec {
	return register(s, &f, prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.help(s.release())}, f.Labels))
}

// Gauges makes gauges.
func (s *Set) Gauges(f Family) *prometheus.GaugeVec {
	return register(s, &f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.help(s.release())}, f.Labels))
}

// Histograms makes histograms.
func (s *Set) Histograms(f Family) *prometheus.HistogramVec {
	return register(s, &f, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: f.Name, Help: f.help(s.release()), Buckets: f.Buckets}, f.Labels))
}

// Read makes a family whose values are read when somebody asks for them: read calls emit
// for each, with the values of the labels. It may be called at any time, by several at once.
func (s *Set) Read(f Family, kind prometheus.ValueType, read func(emit func(value float64, labels ...string))) {
	if err := s.add(&f, &reader{s.Desc(f), kind, read}); err != nil {
		s.err = errors.Join(s.err, err)
	}
}

// Before has f called before somebody reads /metrics, for series that have to go with what
// they are of. It may be called at any time, by several at once.
func (s *Set) Before(f func()) {
	if r, ok := s.to.(*Registry); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.before = append(r.before, f)
	}
}

// Desc is the description of a family that the caller collects, and registers with Add.
func (s *Set) Desc(f Family) *prometheus.Desc {
	return prometheus.NewDesc(f.Name, f.help(s.release()), f.Labels, nil)
}

// Add registers a collector of families of the caller's own, or returns the one of its
// type that is there.
func Add[C prometheus.Collector](s *Set, c C) C { return register(s, &Family{}, c) }

// register registers a collector, or returns the one that is there.
func register[C prometheus.Collector](s *Set, f *Family, c C) C {
	err := s.add(f, c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		if same, ok := twice.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("the metric %s: %w", f.Name, err))
	}
	return c
}

func (s *Set) add(f *Family, c prometheus.Collector) error {
	switch to := s.to.(type) {
	case nil:
		return nil
	case *Registry:
		return to.add(f, c)
	}
	if f.hidden(release.Newest.Minor()) {
		return nil
	}
	return s.to.Register(c)
}

// reader collects a family whose values are read when they are asked for.
type reader struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(emit func(value float64, labels ...string))
}

func (r *reader) Describe(to chan<- *prometheus.Desc) { to <- r.desc }

func (r *reader) Collect(to chan<- prometheus.Metric) {
	r.read(func(value float64, labels ...string) {
		m, err := prometheus.NewConstMetric(r.desc, r.kind, value, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(r.desc, err)
		}
		to <- m
	})
}
