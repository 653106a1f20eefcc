// Package apply is internal/apply under the name that it had.
package apply

import "orch.io/controlplane/internal/apply"

// The types that package registry names.
type (
	Tracker = apply.Tracker
	Config  = apply.Config
	Version = apply.Version
)

// NewTracker returns a Tracker.
func NewTracker(c Config) *Tracker { return apply.NewTracker(c) }
