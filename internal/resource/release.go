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

// inPreviousRelease reports whether the release before r already has the version.
func inPreviousRelease(r release.Release, l registry.Lifetime) bool {
	return l.Introduced == "" || r.Previous().Reached(l.Introduced)
}

// kindAt returns the kind as release r has it: with the versions that r serves, its storage version
// and hub, and its subresources. Information that r does not have yet, such as a deprecation, is
// removed. gone is true if r has removed all versions of the kind; the kind is then returned
// unchanged.
func kindAt(k *registry.Kind, r release.Release) (now *registry.Kind, gone bool) {
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
	adjustReplacements(now)
	return now, false
}

// subresourcesAt returns the kind with the subresources, and the versions of their bodies, that a
// release has.
func subresourcesAt(k *registry.Kind, r release.Release) *registry.Kind {
	scales := k.Scale != nil && k.Scale.Body != nil
	if !scales && !slices.ContainsFunc(k.Subresources, func(s registry.Subresource) bool { return s.Body != nil }) {
		return k
	}
	now := *k
	now.Subresources, now.Versions = nil, slices.Clone(k.Versions)
	if scales {
		scale := *k.Scale
		scale.Body, _ = kindAt(scale.Body, r)
		now.Scale = &scale
	}
	for _, s := range k.Subresources {
		body, gone := s.Body, false
		if body != nil {
			body, gone = kindAt(body, r)
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

// adjustReplacements makes the deprecated versions name a replacement that the release serves. A
// replacement of the same kind that is not served becomes the most recently introduced version that
// is served and not deprecated, or none.
func adjustReplacements(now *registry.Kind) {
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

// storedAt returns the index of the storage version: the newest version that the previous release
// serves, too, so that a server that is downgraded can read the objects. If the program chose a
// storage version other than the hub, that version is kept.
func storedAt(k *registry.Kind, r release.Release) int {
	chosen := slices.IndexFunc(k.Versions, func(v registry.KindVersion) bool { return v.Storage })
	if chosen < 0 || k.Versions[chosen].Conversion != nil {
		return chosen
	}
	known := func(v registry.KindVersion) bool {
		return r.Serves(v.Lifetime.Introduced, v.Lifetime.Removed) && inPreviousRelease(r, v.Lifetime)
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

// newer reports whether version a is newer than b. Versions in the group of the kind itself are
// newer than versions in other groups.
func newer(a, b registry.KindVersion) bool {
	if (a.Group == "") != (b.Group == "") {
		return a.Group == ""
	}
	return CompareVersions(a.Name, b.Name) < 0
}

// CompileAt compiles a kind as release r has it. If r has removed the kind, the type is withheld.
// Objects that are stored in versions that r lacks can still be read, see Type.Reading.
func CompileAt(k *registry.Kind, p names.Profile, r release.Release) (*Type, error) {
	now, gone := kindAt(k, r)
	rules := compat.RulesOf(p, r)
	t, err := (&compiler{kind: now, names: p, rules: rules}).compile()
	if err == nil && gone {
		t.Unserved = !t.Serve(func(*Version) bool { return false })
	}
	if err == nil && len(now.Versions) < len(k.Versions) {
		t.withAllVersions = sync.OnceValues((&compiler{kind: k, names: p, rules: rules}).compile)
	}
	return t, err
}
