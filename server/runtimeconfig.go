package server

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/suggest"
	"orch.io/controlplane/internal/wellknown"
)

// The keys of Serving.RuntimeConfig that select many versions.
const (
	allVersions    = "api/all"
	gaVersions     = "api/ga"
	betaVersions   = "api/beta"
	alphaVersions  = "api/alpha"
	legacyVersions = "api/legacy"
)

// coreSpelledOut matches keys of the core group that begin with "api/", like its path.
var coreSpelledOut = regexp.MustCompile(`^api/(v[0-9])`)

// stabilities maps a key to the pattern of the version names that it selects.
var stabilities = map[string]*regexp.Regexp{
	gaVersions:    regexp.MustCompile(`^v[0-9]+$`),
	betaVersions:  regexp.MustCompile(`^v[0-9]+beta[0-9]+$`),
	alphaVersions: regexp.MustCompile(`^v[0-9]+alpha[0-9]+$`),
}

// runtimeConfig is the parsed Serving.RuntimeConfig: whether each key enables or disables its
// versions. The keys of the core group have no "api/" prefix.
type runtimeConfig map[string]bool

// runtimeConfig parses b.Serving.RuntimeConfig and returns an error for each invalid value and
// duplicate key.
func (b *Builder) runtimeConfig() (c runtimeConfig, faults []error) {
	c = runtimeConfig{}
	spelling := map[string]string{} // of each key, in RuntimeConfig
	for _, key := range slices.Sorted(maps.Keys(b.Serving.RuntimeConfig)) {
		value := b.Serving.RuntimeConfig[key]
		on, err := strconv.ParseBool(value)
		if value == "" {
			on, err = true, nil
		}
		short := coreSpelledOut.ReplaceAllString(key, "$1")
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("Serving.RuntimeConfig[%q]: %q is neither true nor false", key, value))
		case spelling[short] != "":
			faults = append(faults, fmt.Errorf("Serving.RuntimeConfig[%q]: duplicate of %q", key, spelling[short]))
		}
		c[short], spelling[short] = on, key
	}
	return c, faults
}

// serves reports whether a version of a kind is enabled. The most specific key decides. Without a
// key, the version is enabled unless it is an optional beta version.
func (c runtimeConfig) serves(v *resource.Version) bool {
	apiVersion := v.GVK().APIVersion()
	keys := []string{apiVersion + "/" + v.Plural, apiVersion}
	if v.Group == "" && v.Name != "v1" {
		keys = append(keys, legacyVersions)
	}
	for key, form := range stabilities {
		if form.MatchString(v.Name) {
			keys = append(keys, key)
		}
	}
	for _, key := range append(keys, allVersions) {
		if on, ok := c[key]; ok {
			return on
		}
	}
	return !(v.Rules.Has(compat.OptionalBeta) && slices.Contains(v.OptionalVersions, v.Name))
}

// withhold removes disabled versions from the served versions of types, and marks a type as
// withheld if no version is left.
func (c runtimeConfig) withhold(types []*resource.Type) {
	for _, t := range types {
		if len(t.ServedVersions) > 0 && !t.Serve(c.serves) {
			t.Unserved = true
		}
	}
}

// faults returns an error for each key that matches no version or resource of types, and an error
// if no version at all is enabled.
func (c runtimeConfig) faults(p names.Profile, types []*resource.Type) (faults []error) {
	known := []string{allVersions, gaVersions, betaVersions, alphaVersions, legacyVersions}
	known = append(known, p.Group(wellknown.GroupImagePolicy)+"/v1alpha1") // it has no resources: the server only sends its reviews
	some, left := false, false
	for _, t := range types {
		for _, v := range t.Versions {
			if v.Served {
				known = append(known, v.GVK().APIVersion(), v.GVK().APIVersion()+"/"+v.Plural)
				some, left = true, left || c.serves(v)
			}
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if _, found := slices.BinarySearch(known, key); !found {
			faults = append(faults, fmt.Errorf("Serving.RuntimeConfig[%q]: %s", key, unknownKey(key, known)))
		}
	}
	if some && !left && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("Serving.RuntimeConfig disables every version"))
	}
	return faults
}

// unknownKey returns the error text for an unknown key. known are the valid keys, sorted.
func unknownKey(key string, known []string) string {
	var versions []string
	for _, k := range known {
		if strings.HasPrefix(k, key+"/") && strings.Count(k, "/") == strings.Count(key, "/")+1 {
			versions = append(versions, k)
		}
	}
	switch {
	case len(versions) > 0 && !strings.HasPrefix(key, "api"):
		return "this is a group; its versions are " + strings.Join(versions, ", ")
	case strings.Count(key, "/") == 2 || strings.HasPrefix(key, "v1/"):
		return fmt.Sprintf("no kind of this version has the plural %q%s", key[strings.LastIndex(key, "/")+1:], suggest.Near(key, known...))
	}
	return fmt.Sprintf("no kind has the version %q%s", key, suggest.Near(key, known...))
}
