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

// settings takes pairs of a list KEY=VALUE,... into a map. Of a key that is given again the
// last value counts.
func settings(into map[string]string) func(string) error {
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

// setFeatures takes gates; of one that is given again the last value counts.
func (f *flags) setFeatures(text string) error {
	set, err := features.Parse(text)
	for name, on := range set {
		f.features[name] = on
	}
	return err
}

// dropOtherGates puts the gates aside that the release does not have.
func (f *flags) dropOtherGates() {
	set, _ := features.New(f.release, nil) // a release that is none is the server's to refuse
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

// dropOtherVersions puts the versions aside that the server does not have.
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

// kinds are those that are registered: what the release has that is served.
func (f *flags) kinds() []*registry.Kind {
	list := builtin.Kinds()
	if f.inRelease(registry.Lifetime{Introduced: "1.35"}) {
		list = append(list, storagemigration.Kinds()...)
	}
	return list
}

// versions are the group/versions that the server has.
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

// inRelease reports whether the release that is served has a version.
func (f *flags) inRelease(l registry.Lifetime) bool {
	now := release.Newest
	if r, err := release.Parse(f.release); err == nil {
		now = r
	}
	return now.Serves(l.Introduced, l.Removed)
}
