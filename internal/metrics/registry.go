package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/release"
)

// Registry is a prometheus.Registerer for a release of the server. Families that the release
// hides are not registered.
type Registry struct {
	prometheus.Registerer
	release int  // minor number of the release 1.x
	all     bool // hidden families are registered, too

	mu         sync.Mutex // guards the fields below
	deprecated []string   // names of deprecated families that are registered
	counts     map[class]int
	hidden     int                    // number of hidden families
	collectors []prometheus.Collector // registered through this Registry
	before     []func()               // called by Refresh
}

// class is a class of families that are counted together.
type class struct {
	stability  Stability
	deprecated int
}

// NewRegistry returns a Registry for a release that registers in r. If all is true, hidden families
// are registered, too.
func NewRegistry(r prometheus.Registerer, of release.Release, all bool) (*Registry, error) {
	reg := &Registry{Registerer: r, release: of.Minor(), all: all, counts: map[class]int{}}
	return reg, reg.countFamilies()
}

// CheckShow returns an error unless show names the release before r, such as 1.36, or is empty.
// Families that r hides can be shown only if the previous release did not hide them.
func CheckShow(r release.Release, show string) error {
	if want := r.Previous().String(); show != "" && strings.TrimPrefix(show, "v") != want {
		return fmt.Errorf("hidden metrics can be shown only for version %s, the previous release, not for %q", want, show)
	}
	return nil
}

// countFamilies registers the families that count families.
func (r *Registry) countFamilies() error {
	s := For(r)
	s.Read(Family{Name: "registered_metrics_total", Help: "Families of metrics, by the class of their stability and the release that deprecated them.",
		Stability: Beta, Labels: []string{"stability_level", "deprecated_version"}}, prometheus.CounterValue, func(emit func(float64, ...string)) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for c, n := range r.counts {
			version := ""
			if c.deprecated > 0 {
				version = fmt.Sprintf("1.%d.0", c.deprecated)
			}
			emit(float64(n), c.stability.String(), version)
		}
	})
	s.Read(Family{Name: "hidden_metrics_total", Help: "Families of metrics that this release hides.", Stability: Beta},
		prometheus.CounterValue, func(emit func(float64, ...string)) {
			r.mu.Lock()
			defer r.mu.Unlock()
			emit(float64(r.hidden))
		})
	return s.Err()
}

// Deprecated returns the names of the deprecated families that are registered.
func (r *Registry) Deprecated() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deprecated)
}

// Register implements prometheus.Registerer.
func (r *Registry) Register(c prometheus.Collector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.register(c)
}

// register is Register with r.mu held.
func (r *Registry) register(c prometheus.Collector) error {
	if err := r.Registerer.Register(c); err != nil {
		return err
	}
	r.collectors = append(r.collectors, c)
	return nil
}

// Refresh calls the functions of Set.Before. Call it before a scrape.
func (r *Registry) Refresh() {
	r.mu.Lock()
	list := slices.Clone(r.before)
	r.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// Close unregisters all collectors, so that the underlying Registerer can be used again.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.collectors {
		r.Unregister(c)
	}
	r.collectors, r.before = nil, nil
}

// add registers the collector of a family, unless the release hides it.
func (r *Registry) add(f *Family, c prometheus.Collector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.hidden(r.release) {
		r.hidden++
		if !r.all {
			return nil
		}
	}
	if err := r.register(c); err != nil {
		return err
	}
	count := class{stability: f.Stability}
	if f.deprecated(r.release) {
		count.deprecated = f.Deprecated
		if !slices.Contains(r.deprecated, f.Name) {
			r.deprecated = append(r.deprecated, f.Name)
		}
	}
	if f.Name != "" {
		r.counts[count]++
	}
	return nil
}
