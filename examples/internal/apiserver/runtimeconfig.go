package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin"
)

// runtimeConfig is the flag of that name: versions, or words for many of them, and
// whether they are served. The last word about a version counts, and one about a single
// version more than one about many.
type runtimeConfig map[string]bool

// String implements flag.Value.
func (c *runtimeConfig) String() string {
	var list []string
	for _, word := range slices.Sorted(maps.Keys(*c)) {
		list = append(list, fmt.Sprintf("%s=%t", word, (*c)[word]))
	}
	return strings.Join(list, ",")
}

// Set implements flag.Value.
func (c *runtimeConfig) Set(text string) error {
	if *c == nil {
		*c = runtimeConfig{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		word, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		on, err := strconv.ParseBool(cmp.Or(value, "true"))
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", value)
		}
		switch {
		case !on && strings.Count(word, "/") > 1:
			return fmt.Errorf("%s cannot be disabled: name versions of groups", word)
		case word == "api/v1":
			word = "v1"
		case strings.HasPrefix(word, "api/") && word != allVersions && word != gaVersions && word != betaVersions && word != alphaVersions:
			return fmt.Errorf("%s names no versions", word)
		}
		if word != "" {
			(*c)[word] = on
		}
	}
	return nil
}

// The words for many versions, those for more of them first.
const (
	allVersions   = "api/all"
	gaVersions    = "api/ga"
	betaVersions  = "api/beta"
	alphaVersions = "api/alpha"
)

// stability is the word for the versions that are as stable as one.
func stability(version string) string {
	_, name, ok := strings.Cut(version, "/")
	if !ok {
		name = version
	}
	switch {
	case strings.Contains(name, "alpha"):
		return alphaVersions
	case strings.Contains(name, "beta"):
		return betaVersions
	}
	return gaVersions
}

// disabled returns which of the versions that the server has are not served. absent are
// those that were named and that it does not have at all.
func (c runtimeConfig) disabled(has []string) (off, absent []string) {
	for _, version := range has {
		on := true
		for _, word := range []string{allVersions, stability(version), version} {
			if said, ok := c[word]; ok {
				on = said
			}
		}
		if !on {
			off = append(off, version)
		}
	}
	for _, word := range slices.Sorted(maps.Keys(c)) {
		if !strings.HasPrefix(word, "api/") && !slices.Contains(has, word) {
			absent = append(absent, word)
		}
	}
	return off, absent
}

// versions are the group/versions that the server has.
func (f *flags) versions() []string {
	list := []string{f.names.Group(names.GroupAuthentication) + "/v1", f.names.Group(names.GroupAuthorization) + "/v1"}
	for _, k := range builtin.Kinds() {
		for _, v := range k.Versions {
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
