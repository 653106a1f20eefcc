package server

import (
	"log/slog"

	"orch.io/controlplane/api/features"
)

// Enabled reports whether a feature is on, according to Release, Features and Gates. It may be
// called before Build, by programs that choose the parts of the server by features, and at any time
// after it. Unknown features are off.
func (b *Builder) Enabled(name string) bool {
	if b.features != nil {
		return b.features.Enabled(name)
	}
	set, _ := features.New(b.Release, b.Features, b.Gates...) // Build reports the error
	return set.Enabled(name)
}

// logFeatures logs the warnings of gates that are set, for example that a gate has no effect.
func (b *Builder) logFeatures(log *slog.Logger) {
	for _, g := range b.features.All() {
		if g.Warning != "" {
			log.Warn(g.Warning, "gate", g.Name, "set", g.On)
		}
	}
}
