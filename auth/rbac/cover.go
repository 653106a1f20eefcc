package rbac

import (
	"slices"
	"strings"
)

// maxTuples bounds the parts that split may make of a role's rules.
const maxTuples = 100_000

// maxCompared bounds the comparisons of strings in uncovered; their number grows with
// the product of the sizes of both rule lists.
const maxCompared = 50_000_000

// uncovered returns the parts of want that no rule of own covers. A rule of want that
// is not covered as a whole is split, allowReason its parts may be covered by several
// rules of own. ok is false if the comparison would exceed maxTuples or
// maxCompared; the caller must then refuse.
func uncovered(own, want []rule) (missing []rule, ok bool) {
	left, words := maxTuples, maxCompared
	covered := func(w *rule) bool {
		for i := range own {
			if words -= own[i].effort(w); words < 0 {
				return false
			}
			if own[i].covers(w) {
				return true
			}
		}
		return false
	}
	for i := range want {
		if covered(&want[i]) {
			continue
		}
		parts, ok := split(&want[i], &left)
		if !ok {
			return nil, false
		}
		for j := range parts {
			if !covered(&parts[j]) {
				missing = append(missing, parts[j])
			}
			if words < 0 {
				return nil, false
			}
		}
	}
	return missing, words >= 0
}

// effort returns the maximum number of comparisons of r.covers(w).
func (r *rule) effort(w *rule) int {
	return 1 + len(r.Verbs)*len(w.Verbs) + len(r.URLs)*len(w.URLs) + len(r.Groups)*len(w.Groups) +
		len(r.Resources)*len(w.Resources) + len(r.Names)*len(w.Names)
}

// covers reports whether r permits every request that w permits.
func (r *rule) covers(w *rule) bool {
	if !hasAll(r.Verbs, w.Verbs) {
		return false
	}
	for _, u := range w.URLs {
		if !slices.ContainsFunc(r.URLs, func(own string) bool { return urlMatches(own, u) }) {
			return false
		}
	}
	if len(w.Resources) == 0 && len(w.Groups) == 0 {
		return true
	}
	if !hasAll(r.Groups, w.Groups) || len(w.Groups) == 0 {
		return false
	}
	for _, res := range w.Resources {
		if !resourceCovered(r.Resources, res) {
			return false
		}
	}
	if len(r.Names) == 0 {
		return true
	}
	return len(w.Names) > 0 && !slices.ContainsFunc(w.Names, func(n string) bool { return !slices.Contains(r.Names, n) })
}

// hasAll reports whether own has every word of want or has "*". A "*" in want is
// covered only by "*".
func hasAll(own, want []string) bool {
	if slices.Contains(own, all) {
		return true
	}
	for _, w := range want {
		if !slices.Contains(own, w) {
			return false
		}
	}
	return true
}

// resourceCovered reports whether own covers a resource of a rule, such as "pods",
// "pods/log" or "*/status".
func resourceCovered(own []string, want string) bool {
	_, sub, isSub := strings.Cut(want, "/")
	for _, o := range own {
		if o == all || o == want || isSub && o == "*/"+sub {
			return true
		}
	}
	return false
}

// split returns rules with a single verb and a single resource, name or URL each,
// which together equal r. It subtracts their number from left, and returns false
// if left would become negative.
func split(r *rule, left *int) ([]rule, bool) {
	verbs, groups := unique(r.Verbs), unique(r.Groups)
	resources, named, urls := unique(r.Resources), unique(r.Names), unique(r.URLs)
	n := len(verbs) * (len(groups)*len(resources)*max(1, len(named)) + len(urls))
	if *left -= n; *left < 0 {
		return nil, false
	}
	parts := make([]rule, 0, n)
	for _, v := range verbs {
		for _, u := range urls {
			parts = append(parts, rule{Verbs: []string{v}, URLs: []string{u}})
		}
		for _, g := range groups {
			for _, res := range resources {
				part := rule{Verbs: []string{v}, Groups: []string{g}, Resources: []string{res}}
				if len(named) == 0 {
					parts = append(parts, part)
				}
				for _, name := range named {
					part.Names = []string{name}
					parts = append(parts, part)
				}
			}
		}
	}
	return parts, true
}

func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	var out []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
