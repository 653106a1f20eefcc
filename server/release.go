package server

import (
	"cmp"
	"fmt"
	"slices"

	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// parseRelease parses b.Release. If that is empty or invalid, it returns the newest release.
func (b *Builder) parseRelease() (release.Release, error) {
	if b.Release == "" {
		return release.Newest, nil
	}
	const field = "Release"
	r, err := release.Parse(b.Release)
	switch {
	case err != nil:
		return release.Newest, fmt.Errorf("%s: %w", field, err)
	case r.Compare(release.Oldest) < 0 || r.Compare(release.Newest) > 0:
		return release.Newest, fmt.Errorf("%s: unknown release %s: supported are %s to %s", field, r, release.Oldest, release.Newest)
	}
	return r, nil
}

// rules returns the compatibility rules of the names profile and release: the behavior in which the
// reference differs from the specification.
func (b *Builder) rules() compat.Rules {
	return compat.RulesOf(b.Names, b.release)
}

// releaseOf returns the release in which a kind is served. That is b.Release, except that
// PodSecurityPolicy, which newer releases do not have, is served as in its last release if its
// admission plugin is enabled.
func (b *Builder) releaseOf(k *registry.Kind) release.Release {
	const plugin = "PodSecurityPolicy"
	if k.Group != wellknown.GroupPolicy || k.Kind != plugin || !slices.Contains(b.AdmissionOptions.Enable, plugin) {
		return b.release
	}
	if last, _ := release.Parse("1.24"); b.release.Compare(last) > 0 {
		return last
	}
	return b.release
}

// gitVersion returns the version that /version reports. Clients compare it with their own version
// and warn if the minor versions differ by more than one. The patch of the newest release is the
// patch release that defines the implemented behavior.
func (b *Builder) gitVersion() string {
	patch := ".0"
	if b.release == release.Newest {
		patch = ".2"
	}
	return cmp.Or(b.Serving.Version, "v"+b.release.String()+patch)
}
