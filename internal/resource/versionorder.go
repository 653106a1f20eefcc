package resource

import (
	"cmp"
	"strconv"
	"strings"
)

// CompareVersions orders version names by priority: stable versions before beta versions before
// alpha versions, newer before older, and all other names last in alphabetical order.
func CompareVersions(a, b string) int {
	pa, pb := parseVersion(a), parseVersion(b)
	for i := range pa {
		if pa[i] != pb[i] {
			return cmp.Compare(pb[i], pa[i])
		}
	}
	return cmp.Compare(a, b)
}

// parseVersion returns the stability (3 stable, 2 beta, 1 alpha, 0 other), the major and the minor
// number of a version name.
func parseVersion(s string) (v [3]int) {
	rest, ok := strings.CutPrefix(s, "v")
	if !ok {
		return v
	}
	major, minor, stability := rest, "", 3
	for word, rank := range map[string]int{"beta": 2, "alpha": 1} {
		if before, after, found := strings.Cut(rest, word); found {
			major, minor, stability = before, after, rank
		}
	}
	n, err := strconv.Atoi(major)
	if err != nil {
		return v
	}
	m := 0
	if stability < 3 {
		if m, err = strconv.Atoi(minor); err != nil {
			return v
		}
	}
	return [3]int{stability, n, m}
}
