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

// The keys of Serving.RuntimeConfig that stand for many versions.
const (
	allVersions    = "api/all"
	gaVersions     = "api/ga"
	betaVersions   = "api/beta"
	alphaVersions  = "api/alpha"
	legacyVersions = "api/legacy"
)

// coreSpelledOut begins the keys of the core group as its path is.
var coreSpelledOut = regexp.MustCompile(`^api/(v[0-9])`)

// stabilities are the forms of the names of versions that keys stand for.
var stabilities = map[string]*regexp.Regexp{
	gaVersions:    regexp.MustCompile(`^v[0-9]+$`),
	betaVersions:  regexp.MustCompile(`^v[0-9]+beta[0-9]+$`),
	alphaVersions: regexp.MustCompile(`^v[0-9]+alpha[0-9]+$`),
}

// runtimeConfig is Serving.RuntimeConfig read: the keys with what they say.
type runtimeConfig map[string]bool

// runtimeConfig reads what the Builder says of what is served.
func (b *Builder) runtimeConfig() (c runtimeConfig, faults []error) {
	c = runtimeConfig{}
	said := map[string]string{} // the spelling of a key
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
		case said[short] != "":
			faults = append(faults, fmt.Errorf("Serving.RuntimeConfig[%q]: this is what %q is, which is given, too", key, said[short]))
		}
		c[short], said[short] = on, key
	}
	return c, faults
}

// serves reports what is said of a version of a kind: the most specific key counts,
// and without one it is served, unless it is optional.
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

// withhold leaves of types what is served. A type of which nothing is left is withheld.
func (c runtimeConfig) withhold(types []*resource.Type) {
	for _, t := range types {
		if len(t.ServedVersions) > 0 && !t.Serve(c.serves) {
			t.Withheld = true
		}
	}
}

// faults returns the keys that name nothing of all that could be served.
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
		faults = append(faults, fmt.Errorf("Serving.RuntimeConfig leaves nothing to serve"))
	}
	return faults
}

// unknownKey says what is wrong with a key that is none of the known ones, which are sorted.
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
