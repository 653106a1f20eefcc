package resource

import (
	"cmp"
	"slices"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/registry"
)

// before reports whether the release before one has the version already.
func before(r release.Release, l registry.Lifetime) bool {
	return l.Introduced == "" || r.Previous().Reached(l.Introduced)
}

// at returns a kind as a release has it: the versions that it serves, the hub, the
// version that objects are stored in, and the sub-resources. What it does not know yet, such
// as that a version is deprecated, is left out. A kind that it has no more is as it was, and
// gone.
func at(k *registry.Kind, r release.Release) (now *registry.Kind, gone bool) {
	k = subresourcesAt(k, r)
	if !slices.ContainsFunc(k.Versions, func(v registry.KindVersion) bool { return v.Lifetime != registry.Lifetime{} }) {
		return k, false
	}
	if !slices.ContainsFunc(k.Versions, func(v registry.KindVersion) bool { return !r.Reached(v.Lifetime.Removed) }) {
		return k, true
	}
	served := func(v registry.KindVersion) bool {
		return v.Served && r.Serves(v.Lifetime.Introduced, v.Lifetime.Removed)
	}
	stored, some := storedAt(k, r), *k
	now, some.Versions = &some, nil
	for i, v := range k.Versions {
		v.Storage, v.Served = i == stored, served(v)
		if !v.Served && !v.Storage && v.Conversion != nil {
			continue
		}
		if l := &v.Lifetime; l.Deprecated != "" && !r.Reached(l.Deprecated) {
			l.Deprecated, v.Replacement = "", meta.GroupVersionKind{}
		}
		now.Versions = append(now.Versions, v)
	}
	replace(now)
	return now, false
}

// subresourcesAt returns a kind with the sub-resources, and bodies of them, that a release
// has.
func subresourcesAt(k *registry.Kind, r release.Release) *registry.Kind {
	scales := k.Scale != nil && k.Scale.Body != nil
	if !scales && !slices.ContainsFunc(k.Subresources, func(s registry.Subresource) bool { return s.Body != nil }) {
		return k
	}
	now := *k
	now.Subresources, now.Versions = nil, slices.Clone(k.Versions)
	if scales {
		scale := *k.Scale
		scale.Body, _ = at(scale.Body, r)
		now.Scale = &scale
	}
	for _, s := range k.Subresources {
		body, gone := s.Body, false
		if body != nil {
			body, gone = at(body, r)
		}
		if !gone {
			s.Body = body
			now.Subresources = append(now.Subresources, s)
		} else {
			for i := range now.Versions {
				v := &now.Versions[i]
				v.MissingSubresources = slices.DeleteFunc(slices.Clone(v.MissingSubresources), func(name string) bool { return name == s.Name })
			}
		}
	}
	return &now
}

// replace lets deprecated versions name what the release serves: another version of the kind
// only where it has that, else the one that came last of those not deprecated, or none.
func replace(now *registry.Kind) {
	named := func(v registry.KindVersion) meta.GroupVersionKind {
		return meta.GroupVersionKind{Group: cmp.Or(v.Group, now.Group), Version: v.Name, Kind: now.Kind}
	}
	var latest meta.GroupVersionKind
	var since release.Release
	served := map[meta.GroupVersionKind]bool{}
	for _, v := range now.Versions {
		if served[named(v)] = v.Served; !v.Served || v.Deprecated != "" || v.Lifetime.Deprecated != "" {
			continue
		}
		if came, _ := release.Parse(v.Lifetime.Introduced); latest.Version == "" || came.Compare(since) > 0 {
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
func storedAt(k *registry.Kind, r release.Release) int {
	chosen := slices.IndexFunc(k.Versions, func(v registry.KindVersion) bool { return v.Storage })
	if chosen < 0 || k.Versions[chosen].Conversion != nil {
		return chosen
	}
	known := func(v registry.KindVersion) bool {
		return r.Serves(v.Lifetime.Introduced, v.Lifetime.Removed) && before(r, v.Lifetime)
	}
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

// CompileAt is Compile for a kind as a release has it; withheld if it has it no more.
// Objects that are stored in other versions are read as well, see Type.Reading.
func CompileAt(k *registry.Kind, p names.Profile, r release.Release) (*Type, error) {
	now, gone := at(k, r)
	rules := compat.RulesOf(p, r)
	t, err := (&compiler{kind: now, names: p, rules: rules}).compile()
	if err == nil && gone {
		t.Withheld = !t.Serve(func(*Version) bool { return false })
	}
	if err == nil && len(now.Versions) < len(k.Versions) {
		t.whole = sync.OnceValues((&compiler{kind: k, names: p, rules: rules}).compile)
	}
	return t, err
}
