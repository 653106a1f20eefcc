package server

import (
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/metrics"
)

// Enabled reports whether a feature is on, as Release, Features and Gates say: before Build
// for who decides what the server is made of, and at any time after it. One that nobody
// knows is off.
func (b *Builder) Enabled(name string) bool {
	if b.features != nil {
		return b.features.Enabled(name)
	}
	set, _ := features.New(b.Release, b.Features, b.Gates...) // Build tells what is wrong
	return set.Enabled(name)
}

// tellFeatures warns of gates that are set in vain, and has metrics show them all.
func (s *Server) tellFeatures() error {
	set := metrics.For(s.metrics.registry)
	gauge := set.Gauges(metrics.Family{
		Name: s.names.Wire(names.FeatureMetric), Help: "1 if the feature is on, else 0, by the stage of its gate.",
		Stability: metrics.Beta, Labels: []string{"name", "stage"},
	})
	for _, g := range s.features.All() {
		if g.Warning != "" {
			s.log.Warn(g.Warning, "gate", g.Name, "set", g.On)
		}
		on := 0.0
		if g.On {
			on = 1
		}
		gauge.WithLabelValues(g.Name, g.Stage).Set(on)
	}
	return set.Err()
}
