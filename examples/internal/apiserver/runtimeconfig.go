package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/builtin/storagemigration"
)

// parseSettings returns a function that parses a list KEY=VALUE,... into a map. If a key is repeated, the
// last value applies.
func parseSettings(into map[string]string) func(string) error {
	return func(list string) error {
		for word := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(word) == "" {
				continue
			}
			key, value, _ := strings.Cut(word, "=")
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			if _, err := strconv.ParseBool(value); err != nil && value != "" {
				return fmt.Errorf("%q is neither true nor false", value)
			}
			into[key] = value
		}
		return nil
	}
}

// setFeatures parses feature gates. If a gate is repeated, the last value applies.
func (f *flags) setFeatures(text string) error {
	set, err := features.Parse(text)
	for name, on := range set {
		f.features[name] = on
	}
	return err
}

// dropOtherGates moves the feature gates that the release does not have to otherGates.
func (f *flags) dropOtherGates() {
	set, _ := features.New(f.release, nil) // Build rejects an unknown release
	known := map[string]bool{"AllAlpha": true, "AllBeta": true}
	for _, g := range set.All() {
		known[g.Name] = true
	}
	for name := range f.features {
		if !known[name] {
			f.otherGates = append(f.otherGates, name)
			delete(f.features, name)
		}
	}
	slices.Sort(f.otherGates)
}

// dropOtherVersions moves the versions that the server does not have to otherVersions.
func (f *flags) dropOtherVersions() {
	has := f.versions()
	for _, key := range slices.Sorted(maps.Keys(f.runtimeConfig)) {
		if strings.HasPrefix(key, "api/") || slices.ContainsFunc(has, func(v string) bool { return key == v || strings.HasPrefix(key, v+"/") }) {
			continue
		}
		f.otherVersions = append(f.otherVersions, key)
		delete(f.runtimeConfig, key)
	}
}

// kinds returns the kinds to register for the release.
func (f *flags) kinds() []*registry.Kind {
	list := builtin.Kinds()
	if f.inRelease(registry.Lifetime{Introduced: "1.35"}) {
		list = append(list, storagemigration.Kinds()...)
	}
	return list
}

// versions returns the group/versions that the server has.
func (f *flags) versions() []string {
	var list []string
	everyone := auth.Union(auth.AnonymousAccess)
	for _, k := range slices.Concat(f.kinds(), review.Identity(everyone, nil), review.Access(auth.AllowAll)) {
		for _, v := range k.Versions {
			if !v.Served || !f.inRelease(v.Lifetime) {
				continue
			}
			version := v.Name
			if group := cmp.Or(v.Group, k.Group); group != "" {
				version = f.names.Group(group) + "/" + v.Name
			}
			list = append(list, version)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// inRelease reports whether the served release has an API version with the given lifetime.
func (f *flags) inRelease(l registry.Lifetime) bool {
	now := release.Newest
	if r, err := release.Parse(f.release); err == nil {
		now = r
	}
	return now.Serves(l.Introduced, l.Removed)
}
