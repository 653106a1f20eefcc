package server

import (
	"log/slog"

	"orch.io/controlplane/api/features"
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

// logFeatures warns of feature gates that are set without effect.
func (b *Builder) logFeatures(log *slog.Logger) {
	for _, g := range b.features.All() {
		if g.Warning != "" {
			log.Warn(g.Warning, "gate", g.Name, "set", g.On)
		}
	}
}
