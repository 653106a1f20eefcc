package aggregator

import (
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/requestinfo"
)

// Cached returns a Source for the APIServices in a cache.
func Cached(cache *objectcache.Cache) Source { return cached{cache} }

type cached struct{ cache *objectcache.Cache }

// Changed implements Source.
func (c cached) Changed() int64 { return int64(c.cache.Changed()) }

// List implements Source.
func (c cached) List() (list []Record) {
	for _, e := range c.cache.List(objectcache.Query{}, "", 0).Entries {
		list = append(list, Record{Name: e.Key().Name, Revision: int64(e.Revision()), Object: e.Object})
	}
	return list
}

// LocalVersions returns the served group versions of types.
func LocalVersions(types []*resource.Type) (list []LocalVersion) {
	at := map[meta.GroupVersion]int{}
	for _, t := range types {
		for _, v := range t.Versions {
			if !v.Served {
				continue
			}
			i, ok := at[v.GroupVersion()]
			if !ok {
				i = len(list)
				at[v.GroupVersion()] = i
				list = append(list, LocalVersion{GroupVersion: v.GroupVersion(), Defined: true})
			}
			list[i].Defined = list[i].Defined && t.Defined()
		}
	}
	return list
}

// VersionFor returns the version of a request, if an extension server serves it, or nil. A nil Aggregator has no such
// versions.
func (a *Aggregator) VersionFor(r *requestinfo.Info) *Version {
	if a == nil {
		return nil
	}
	gv := meta.GroupVersion{Group: r.Group, Version: r.APIVersion}
	if !r.IsResource {
		var ok bool
		if gv, ok = pathVersion(r.Path); !ok {
			return nil
		}
	}
	v := a.Table().Remote(gv)
	if v != nil && strings.HasPrefix(r.Path, "/openapi/") && !v.ServesV3() {
		return nil
	}
	return v
}
