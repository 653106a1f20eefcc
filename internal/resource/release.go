package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// Release is one of the field's releases, whose versions of kinds a server serves.
type Release struct{ major, minor int }

// The releases between which a server can choose.
var (
	OldestRelease = Release{1, 15}
	NewestRelease = Release{1, 36}
)

// ParseRelease reads a release such as "1.22".
func ParseRelease(text string) (Release, error) {
	first, second, _ := strings.Cut(text, ".")
	major, _ := strconv.ParseUint(first, 10, 16)
	minor, _ := strconv.ParseUint(second, 10, 16)
	r := Release{int(major), int(minor)}
	if r.String() != text {
		return Release{}, fmt.Errorf("%q is no release: it has a form like %s", text, NewestRelease)
	}
	return r, nil
}

// String returns the release as ParseRelease reads it.
func (r Release) String() string { return strconv.Itoa(r.major) + "." + strconv.Itoa(r.minor) }

// Compare orders releases by age, the older ones first.
func (r Release) Compare(other Release) int {
	return cmp.Or(cmp.Compare(r.major, other.major), cmp.Compare(r.minor, other.minor))
}

// Next returns the release after this one.
func (r Release) Next() Release { return Release{r.major, r.minor + 1} }

// reached reports whether a release, or one before it, is the one that a Lifetime names.
// None is never reached, and of one that cannot be read Compile tells.
func (r Release) reached(named string) bool {
	if named == "" {
		return false
	}
	when, err := ParseRelease(named)
	return err == nil && when.Compare(r) <= 0
}

// serves reports whether a release has the version.
func (r Release) serves(l registry.Lifetime) bool {
	return (l.Introduced == "" || r.reached(l.Introduced)) && !r.reached(l.Removed)
}

// before reports whether the release before this one has the version already.
func (r Release) before(l registry.Lifetime) bool {
	return l.Introduced == "" || Release{r.major, r.minor - 1}.reached(l.Introduced)
}

// at returns a kind as a release has it: the versions that it serves, the hub, and the
// version that objects are stored in. What it does not know yet, such as that a version
// is deprecated, is left out. nil: it has the kind no more.
func at(k *registry.Kind, r Release) *registry.Kind {
	if !slices.ContainsFunc(k.Versions, func(v registry.KindVersion) bool { return v.Lifetime != registry.Lifetime{} }) {
		return k
	}
	served := func(v registry.KindVersion) bool { return v.Served && r.serves(v.Lifetime) }
	if !slices.ContainsFunc(k.Versions, served) && !slices.ContainsFunc(k.Versions, func(v registry.KindVersion) bool { return !r.reached(v.Lifetime.Removed) }) {
		return nil
	}
	now, stored := *k, storedAt(k, r)
	now.Versions = nil
	for i, v := range k.Versions {
		v.Storage, v.Served = i == stored, served(v)
		if !v.Served && !v.Storage && v.Conversion != nil {
			continue
		}
		if l := &v.Lifetime; l.Deprecated != "" && !r.reached(l.Deprecated) {
			l.Deprecated, v.Replacement = "", meta.GroupVersionKind{}
		}
		now.Versions = append(now.Versions, v)
	}
	replace(&now, r)
	return &now
}

// replace lets deprecated versions name what the release serves: another version of the kind
// only where it has that, else the one that came last of those not deprecated, or none.
func replace(now *registry.Kind, r Release) {
	named := func(v registry.KindVersion) meta.GroupVersionKind {
		return meta.GroupVersionKind{Group: cmp.Or(v.Group, now.Group), Version: v.Name, Kind: now.Kind}
	}
	var latest meta.GroupVersionKind
	var since Release
	served := map[meta.GroupVersionKind]bool{}
	for _, v := range now.Versions {
		if served[named(v)] = v.Served; !v.Served || v.Deprecated != "" || v.Lifetime.Deprecated != "" {
			continue
		}
		if came, _ := ParseRelease(v.Lifetime.Introduced); latest.Version == "" || came.Compare(since) > 0 {
			latest, since = named(v), came
		}
	}
	for i := range now.Versions {
		if use := &now.Versions[i].Replacement; use.Kind == now.Kind && !served[*use] {
			*use = latest
		}
	}
}

// storedAt returns which version objects are stored in: the newest that the release
// before serves, too, so that who goes back to that can read them. It stays what a
// program chose where that is not the hub.
func storedAt(k *registry.Kind, r Release) int {
	chosen := slices.IndexFunc(k.Versions, func(v registry.KindVersion) bool { return v.Storage })
	if chosen < 0 || k.Versions[chosen].Conversion != nil {
		return chosen
	}
	known := func(v registry.KindVersion) bool { return r.serves(v.Lifetime) && r.before(v.Lifetime) }
	if hub := k.Versions[chosen]; known(hub) || !slices.ContainsFunc(k.Versions, known) {
		return chosen
	}
	best := -1
	for i, v := range k.Versions {
		if known(v) && (best < 0 || newer(v, k.Versions[best])) {
			best = i
		}
	}
	return best
}

// newer compares versions, of which those in the group of the kind itself are newer.
func newer(a, b registry.KindVersion) bool {
	if (a.Group == "") != (b.Group == "") {
		return a.Group == ""
	}
	return CompareVersions(a.Name, b.Name) < 0
}

// CompileAt is Compile for a kind as a release has it; nil if it has it no more. Objects
// that are stored in other versions are read as well, see Type.Reading.
func CompileAt(k *registry.Kind, p names.Profile, r Release) (*Type, error) {
	now := at(k, r)
	if now == nil {
		return nil, nil
	}
	t, err := Compile(now, p)
	if err == nil && len(now.Versions) < len(k.Versions) {
		t.whole = sync.OnceValues(func() (*Type, error) { return Compile(k, p) })
	}
	return t, err
}
