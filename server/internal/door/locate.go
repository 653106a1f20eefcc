package door

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/requestinfo"
)

// locate finds out which server the request goes on to, if any, and whether it is long-running,
// by the caches as they are.
func (d *Door) locate(r *exchange.Request) {
	r.Remote = d.o.Aggregator.VersionFor(&r.Info)
	r.Connects = d.connects(r)
	r.LongRunning = r.Verb == "watch" || r.Connects
}

// connects reports whether the request goes on to another server or to an agent of a node, and
// lasts as long as both want.
func (d *Door) connects(r *exchange.Request) bool {
	if r.Remote != nil {
		return r.Upgrades() || requestinfo.ConnectsBy(r.Subresource)
	}
	if r.Subresource == "" {
		return false
	}
	v := d.version(r)
	if v == nil {
		return false
	}
	sub := v.Subresource(r.Subresource)
	return sub != nil && sub.Connect != nil
}

// anyRevision reports whether the request reads objects of this server at any revision.
func (d *Door) anyRevision(r *exchange.Request) bool {
	return (r.Verb == "get" || r.Verb == "list") && r.Query.Get("resourceVersion") == "0" &&
		r.Remote == nil && !r.Connects && d.version(r) != nil
}

// version returns the version that the path names, nil if the server has no such resource.
func (d *Door) version(r *exchange.Request) *resource.Version {
	return d.o.Types().Version(meta.GroupVersionResource{Group: r.Group, Version: r.APIVersion, Resource: r.Resource})
}
