// Package release knows the field's releases, such as 1.37: which there are and which
// comes before which.
package release

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Release is one of the field's releases.
type Release struct{ major, minor int }

// The releases between which a server can choose.
var (
	Oldest = Release{1, 15}
	Newest = Release{1, 37}
)

// Parse reads a release such as "1.22".
func Parse(text string) (Release, error) {
	r, ok := parse(text)
	if !ok {
		return Release{}, fmt.Errorf("%q is no release: it has a form like %s", text, Newest)
	}
	return r, nil
}

// parse is Parse for who needs no text of what is wrong: kinds name many releases.
func parse(text string) (Release, bool) {
	first, second, _ := strings.Cut(text, ".")
	major, ok := number(first)
	minor, too := number(second)
	return Release{major, minor}, ok && too
}

// number reads digits, of which the first is 0 only if there is no other.
func number(digits string) (n int, ok bool) {
	if digits == "" || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if n = 10*n + int(c-'0'); c < '0' || c > '9' || n > math.MaxUint16 {
			return 0, false
		}
	}
	return n, true
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
	when, ok := parse(named)
	return ok && when.Compare(r) <= 0
}

// Serves reports whether a release has what was introduced in one and removed in another;
// no name is: always, and never.
func (r Release) Serves(introduced, removed string) bool {
	return (introduced == "" || r.Reached(introduced)) && !r.Reached(removed)
}
