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

// release returns the release whose versions are served.
func (b *Builder) release() (release.Release, error) {
	if b.Release == "" {
		return release.Newest, nil
	}
	const field = "Release"
	r, err := release.Parse(b.Release)
	switch {
	case err != nil:
		return release.Newest, fmt.Errorf("%s: %w", field, err)
	case r.Compare(release.Oldest) < 0 || r.Compare(release.Newest) > 0:
		return release.Newest, fmt.Errorf("%s: %s is not known: there are %s to %s", field, r, release.Oldest, release.Newest)
	}
	return r, nil
}

// rules returns which rules hold where the specification and the reference differ.
func (b *Builder) rules() compat.Rules {
	r, _ := b.release() // a fault of it fails Build
	return compat.RulesOf(b.Names, r)
}

// releaseOf returns the release that a kind is served as in. The policies of an admission
// plugin that no release has any more are there with it, as in the last one.
func (b *Builder) releaseOf(k *registry.Kind) release.Release {
	r, _ := b.release() // a fault of it fails Build
	const plugin = "PodSecurityPolicy"
	if k.Group != wellknown.GroupPolicy || k.Kind != plugin || !slices.Contains(b.AdmissionOptions.Enable, plugin) {
		return r
	}
	if last, _ := release.Parse("1.24"); r.Compare(last) > 0 {
		return last
	}
	return r
}

// gitVersion is what /version tells: of the newest release the one whose behaviour is
// implemented. Clients compare it with their own and warn when it is more than one minor
// version away.
func (b *Builder) gitVersion() string {
	r, _ := b.release()
	patch := ".0"
	if r == release.Newest {
		patch = ".2"
	}
	return cmp.Or(b.Serving.Version, "v"+r.String()+patch)
}
