// Package release parses and compares Kubernetes releases, such as 1.37.
package release

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Release is a Kubernetes release. Releases are comparable with ==.
type Release struct{ major, minor int }

// The range of releases that a server can present.
var (
	Oldest = Release{1, 15}
	Newest = Release{1, 37}
)

// Parse parses a release such as "1.22".
func Parse(text string) (Release, error) {
	r, ok := parse(text)
	if !ok {
		return Release{}, fmt.Errorf("invalid release %q: must have a form like %s", text, Newest)
	}
	return r, nil
}

// parse is Parse without an error text, which would be costly: kinds parse many releases at start.
func parse(text string) (Release, bool) {
	majorText, minorText, _ := strings.Cut(text, ".")
	major, ok := number(majorText)
	minor, minorOK := number(minorText)
	return Release{major, minor}, ok && minorOK
}

// number parses a decimal number up to 65535 without leading zeros.
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

// String returns the release in the form that Parse accepts.
func (r Release) String() string { return strconv.Itoa(r.major) + "." + strconv.Itoa(r.minor) }

// Minor returns the minor version.
func (r Release) Minor() int { return r.minor }

// Compare returns a negative number if r is older than other, 0 if they are equal, and a positive
// number if it is newer.
func (r Release) Compare(other Release) int {
	return cmp.Or(cmp.Compare(r.major, other.major), cmp.Compare(r.minor, other.minor))
}

// Next returns the next minor release.
func (r Release) Next() Release { return Release{r.major, r.minor + 1} }

// Previous returns the previous minor release.
func (r Release) Previous() Release { return Release{r.major, r.minor - 1} }

// Reached reports whether r is the named release or newer. It returns false if named is empty or
// malformed.
func (r Release) Reached(named string) bool {
	when, ok := parse(named)
	return ok && when.Compare(r) <= 0
}

// Serves reports whether r serves a version that was introduced and removed in the given releases. An
// empty introduced means always, an empty removed means never.
func (r Release) Serves(introduced, removed string) bool {
	return (introduced == "" || r.Reached(introduced)) && !r.Reached(removed)
}
