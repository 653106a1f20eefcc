// Package metrics registers the metric families of a server. It adds the stability of a family to
// its help text, and leaves out families that the server's release hides.
//
// A component declares a Family and creates it through a Set:
//
//	set := metrics.For(registerer)
//	calls := set.Counters(metrics.Family{Name: "calls_total", Help: "Calls, by result.", Labels: []string{"result"}})
//	err := set.Err()
//
// If two components create the same family in one Registerer, they share it.
package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/release"
)

// Stability is the stability class of a family's name and labels.
type Stability int

// The stability classes. A deprecated family is shown for 0, 1 or 3 more releases, and then hidden.
const (
	Alpha Stability = iota
	Beta
	Stable
)

func (s Stability) String() string { return [...]string{"ALPHA", "BETA", "STABLE"}[s] }

// window returns for how many releases a deprecated family is still shown.
func (s Stability) window() int { return [...]int{0, 1, 3}[s] }

// Family declares a metric family.
type Family struct {
	Name, Help string
	Stability  Stability
	Deprecated int // minor number of the release 1.x that deprecated the family; 0: not deprecated
	Labels     []string
	Buckets    []float64 // for histograms
}

// help returns the help text of the family in the release 1.release.
func (f *Family) help(release int) string {
	notice := ""
	if f.deprecated(release) {
		notice = fmt.Sprintf("(Deprecated since 1.%d.0) ", f.Deprecated)
	}
	return "[" + f.Stability.String() + "] " + notice + f.Help
}

// deprecated reports whether the family is deprecated in a release.
func (f *Family) deprecated(release int) bool { return f.Deprecated > 0 && f.Deprecated <= release }

// hidden reports whether a release shows the family only on request.
func (f *Family) hidden(release int) bool {
	return f.deprecated(release) && release >= f.Deprecated+f.Stability.window()
}

// Set creates the families of a component. It must be used by a single goroutine.
type Set struct {
	to  prometheus.Registerer
	err error
}

// For returns a Set that registers families in to. If to is nil, families work but are not
// registered.
func For(to prometheus.Registerer) *Set { return &Set{to: to} }

// Err returns the errors of families that could not be registered. These families work
// nevertheless.
func (s *Set) Err() error { return s.err }

// release returns the minor number of the release that selects the families of the Set.
func (s *Set) release() int {
	if r, ok := s.to.(*Registry); ok {
		return r.release
	}
	return release.Newest.Minor()
}

// Counters returns a family of counters.
func (s *Set) Counters(f Family) *prometheus.CounterVec {
	return register(s, &f, prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.help(s.release())}, f.Labels))
}

// Gauges returns a family of gauges.
func (s *Set) Gauges(f Family) *prometheus.GaugeVec {
	return register(s, &f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.help(s.release())}, f.Labels))
}

// Histograms returns a family of histograms.
func (s *Set) Histograms(f Family) *prometheus.HistogramVec {
	return register(s, &f, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: f.Name, Help: f.help(s.release()), Buckets: f.Buckets}, f.Labels))
}

// Read registers a family that is read on each scrape: read calls emit with each value and
// its label values. read may be called at any time, from several goroutines.
func (s *Set) Read(f Family, kind prometheus.ValueType, read func(emit func(value float64, labels ...string))) {
	if err := s.add(&f, &reader{s.Desc(f), kind, read}); err != nil {
		s.err = errors.Join(s.err, err)
	}
}

// Before registers a function that is called before each scrape, for example to delete series of
// things that no longer exist. f may be called at any time, from several goroutines.
func (s *Set) Before(f func()) {
	if r, ok := s.to.(*Registry); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.before = append(r.before, f)
	}
}

// Desc returns the description of a family for a collector of the caller, to be registered with
// Add.
func (s *Set) Desc(f Family) *prometheus.Desc {
	return prometheus.NewDesc(f.Name, f.help(s.release()), f.Labels, nil)
}

// Add registers a collector of the caller. If an equal collector of the same type is registered
// already, Add returns the registered collector.
func Add[C prometheus.Collector](s *Set, c C) C { return register(s, &Family{}, c) }

// register registers a collector and returns it, or the equal collector that is registered already.
func register[C prometheus.Collector](s *Set, f *Family, c C) C {
	err := s.add(f, c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		if same, ok := twice.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("metric %s: %w", f.Name, err))
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

// reader is a collector that reads the values of a family on each scrape.
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
