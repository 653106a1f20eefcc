// Package older describes versions of built-in kinds that releases serve no more.
package older

import (
	"reflect"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Same returns a version of the shape of the hub, with the releases that introduce,
// deprecate and remove it. Use is the group and the version that callers shall go to, by
// spec names; empty: warnings name none.
func Same[H any](version, introduced, deprecated, removed, use string) registry.Spoke[H, H] {
	return registry.Spoke[H, H]{
		Version: version, Lifetime: registry.Lifetime{Introduced: introduced, Deprecated: deprecated, Removed: removed}, Replacement: Use[H](use),
	}
}

// Use returns the kind of the hub in a group and version, none if that is empty.
func Use[H any](use string) meta.GroupVersionKind {
	if use == "" {
		return meta.GroupVersionKind{}
	}
	gv := meta.ParseAPIVersion(use)
	return meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: reflect.TypeFor[H]().Name()}
}
