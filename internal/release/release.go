// Package release knows the field's releases, such as 1.36: which there are and which
// comes before which.
package release

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Release is one of the field's releases.
type Release struct{ major, minor int }

// The releases between which a server can choose.
var (
	Oldest = Release{1, 15}
	Newest = Release{1, 36}
)

// Parse reads a release such as "1.22".
func Parse(text string) (Release, error) {
	first, second, _ := strings.Cut(text, ".")
	major, _ := strconv.ParseUint(first, 10, 16)
	minor, _ := strconv.ParseUint(second, 10, 16)
	r := Release{int(major), int(minor)}
	if r.String() != text {
		return Release{}, fmt.Errorf("%q is no release: it has a form like %s", text, Newest)
	}
	return r, nil
}

// String returns the release as Parse reads it.
func (r Release) String() string { return strconv.Itoa(r.major) + "." + strconv.Itoa(r.minor) }

// Minor returns the number of the release in its major one.
func (r Release) Minor() int { return r.minor }

// Compare orders releases by age, the older ones first.
func (r Release) Compare(other Release) int {
	return cmp.Or(cmp.Compare(r.major, other.major), cmp.Compare(r.minor, other.minor))
}

// Next returns the release after this one.
func (r Release) Next() Release { return Release{r.major, r.minor + 1} }

// Previous returns the release before this one.
func (r Release) Previous() Release { return Release{r.major, r.minor - 1} }

// Reached reports whether a release, or one before it, is the one that is named. None is
// never reached, nor is one that cannot be read.
func (r Release) Reached(named string) bool {
	when, err := Parse(named)
	return err == nil && when.Compare(r) <= 0
}

// Serves reports whether a release has what was introduced in one and removed in another;
// no name is: always, and never.
func (r Release) Serves(introduced, removed string) bool {
	return (introduced == "" || r.Reached(introduced)) && !r.Reached(removed)
}
