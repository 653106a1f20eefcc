package discovery

import (
	"cmp"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
)

// group is an API group with its versions, beginning with the preferred version.
type group struct {
	name     string
	versions []groupVersion
}

type groupVersion struct {
	name   string
	types  []*resource.Version
	remote *aggregator.Version // nil if this server serves the version
}

// groupsOf returns the groups of types: the core group, then the other groups by name.
func groupsOf(types []*resource.Type) []group {
	byName := map[string]map[string][]*resource.Version{}
	for _, t := range types {
		for _, v := range t.Versions {
			if !v.Served {
				continue
			}
			if byName[v.Group] == nil {
				byName[v.Group] = map[string][]*resource.Version{}
			}
			byName[v.Group][v.Name] = append(byName[v.Group][v.Name], v)
		}
	}
	var list []group
	for name, versions := range byName {
		g := group{name: name}
		for v, types := range versions {
			g.versions = append(g.versions, groupVersion{name: v, types: types})
		}
		slices.SortFunc(g.versions, func(a, b groupVersion) int { return resource.CompareVersions(a.name, b.name) })
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b group) int { return cmp.Compare(a.name, b.name) })
	return list
}

// withRemote adds the versions that other servers serve, and sorts groups and versions by priority.
func withRemote(groups []group, t *aggregator.Table) []group {
	for _, v := range t.AllRemote() {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == v.Group })
		if i < 0 {
			i, groups = len(groups), append(groups, group{name: v.Group})
		}
		g := &groups[i]
		g.versions = slices.DeleteFunc(g.versions, func(of groupVersion) bool { return of.name == v.Version })
		g.versions = append(g.versions, groupVersion{name: v.Version, remote: v})
	}
	best := map[string]int64{}
	for _, g := range groups {
		priority := func(v groupVersion) aggregator.Priority {
			return t.Priority(meta.GroupVersion{Group: g.name, Version: v.name})
		}
		for _, v := range g.versions {
			best[g.name] = max(best[g.name], priority(v).Group)
		}
		slices.SortFunc(g.versions, func(a, b groupVersion) int {
			return cmp.Or(cmp.Compare(priority(b).Version, priority(a).Version), resource.CompareVersions(a.name, b.name))
		})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(best[b.name], best[a.name]), cmp.Compare(a.name, b.name))
	})
	return groups
}
