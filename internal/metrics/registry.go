package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/release"
)

// Registry is a prometheus.Registerer of one release of a server: what that hides is not
// registered.
type Registry struct {
	prometheus.Registerer
	release int  // the minor one of 1
	all     bool // hidden families are shown

	mu         sync.Mutex
	deprecated []string // that are shown nevertheless
	counts     map[class]int
	hidden     int
	ours       []prometheus.Collector
	before     []func() // Refresh
}

// class is what families are counted by.
type class struct {
	stability  Stability
	deprecated int
}

// NewRegistry returns the Registry over r of a release. all shows what the release hides,
// too.
func NewRegistry(r prometheus.Registerer, of release.Release, all bool) (*Registry, error) {
	reg := &Registry{Registerer: r, release: of.Minor(), all: all, counts: map[class]int{}}
	return reg, reg.countFamilies()
}

// CheckShow says whether a release can show what is hidden since another one: that is the
// one before, such as 1.36. Empty is none.
func CheckShow(r release.Release, show string) error {
	if want := r.Previous().String(); show != "" && strings.TrimPrefix(show, "v") != want {
		return fmt.Errorf("metrics that are hidden can be shown for version %s alone, the one before this, not for %q", want, show)
	}
	return nil
}

// countFamilies shows how many families there are.
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

// Deprecated returns the names of the families that are shown and that nobody should use
// any more.
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

func (r *Registry) register(c prometheus.Collector) error {
	if err := r.Registerer.Register(c); err != nil {
		return err
	}
	r.ours = append(r.ours, c)
	return nil
}

// Refresh brings families up to date that are kept so by Set.Before, for somebody who is about to read
// them.
func (r *Registry) Refresh() {
	r.mu.Lock()
	list := slices.Clone(r.before)
	r.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// Close takes back what was registered here, so that what is below can be used again.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.ours {
		r.Unregister(c)
	}
	r.ours, r.before = nil, nil
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
