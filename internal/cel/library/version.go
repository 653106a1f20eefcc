package library

import (
	"cel.dev/cel-go/common/cost"
	"github.com/blang/semver/v4"
)

// versions returns the functions of semantic versions.
func (k kinds) versions() []function {
	lenient := func(s string, lenient bool) (semver.Version, error) {
		if lenient {
			return semver.ParseTolerant(s)
		}
		return semver.Parse(s)
	}
	part := func(name string, of func(semver.Version) uint64) function {
		return function1(name, k.version, integer(), infallible(func(v semver.Version) int64 { return int64(of(v)) }), lookCost()).asMethod() // in the range of int64 in practice
	}
	return []function{
		function1("semver", text(), k.version, semver.Parse, readCost(cost.Arg(0))),
		function2("semver", text(), boolean(), k.version, lenient, readCost(cost.Arg(0))),
		function1("isSemver", text(), boolean(), valid(semver.Parse), readCost(cost.Arg(0))),
		function2("isSemver", text(), boolean(), boolean(), func(s string, l bool) (bool, error) {
			_, err := lenient(s, l)
			return err == nil, nil
		}, readCost(cost.Arg(0))),
		part("major", func(v semver.Version) uint64 { return v.Major }),
		part("minor", func(v semver.Version) uint64 { return v.Minor }),
		part("patch", func(v semver.Version) uint64 { return v.Patch }),
		function2("compareTo", k.version, k.version, integer(), infallible2(func(a, b semver.Version) int64 { return int64(a.Compare(b)) }), lookCost()).asMethod(),
		function2("isGreaterThan", k.version, k.version, boolean(), infallible2(semver.Version.GT), lookCost()).asMethod(),
		function2("isLessThan", k.version, k.version, boolean(), infallible2(semver.Version.LT), lookCost()).asMethod(),
	}
}
