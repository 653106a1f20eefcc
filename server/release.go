package server

import (
	"cmp"
	"fmt"
	"slices"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// release returns the release whose versions are served.
func (b *Builder) release() (resource.Release, error) {
	if b.Release == "" {
		return resource.NewestRelease, nil
	}
	const field = "Release"
	r, err := resource.ParseRelease(b.Release)
	switch {
	case err != nil:
		return resource.NewestRelease, fmt.Errorf("%s: %w", field, err)
	case r.Compare(resource.OldestRelease) < 0 || r.Compare(resource.NewestRelease) > 0:
		return resource.NewestRelease, fmt.Errorf("%s: %s is not known: there are %s to %s", field, r, resource.OldestRelease, resource.NewestRelease)
	}
	return r, nil
}

// releaseOf returns the release that a kind is served as in. The policies of an admission
// plugin that no release has any more are there with it, as in the last one.
func (b *Builder) releaseOf(k *registry.Kind) resource.Release {
	r, _ := b.release() // a fault of it fails Build
	const plugin = "PodSecurityPolicy"
	if k.Group != names.GroupPolicy || k.Kind != plugin || !slices.Contains(b.AdmissionOptions.Enable, plugin) {
		return r
	}
	if last, _ := resource.ParseRelease("1.24"); r.Compare(last) > 0 {
		return last
	}
	return r
}

// gitVersion is what /version tells.
func (b *Builder) gitVersion() string {
	if r, _ := b.release(); r != resource.NewestRelease {
		return cmp.Or(b.Serving.Version, "v"+r.String()+".0")
	}
	return cmp.Or(b.Serving.Version, defaultVersion)
}
