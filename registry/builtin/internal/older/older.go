// Package older describes versions of built-in kinds that recent releases no longer serve.
package older

import (
	"reflect"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Same returns a version with the schema of the hub, and the releases that introduce, deprecate and
// remove it. use is the group/version, by spec names, that deprecation warnings recommend; ""
// recommends none.
func Same[H any](version, introduced, deprecated, removed, use string) registry.Spoke[H, H] {
	return registry.Spoke[H, H]{
		Version: version, Lifetime: registry.Lifetime{Introduced: introduced, Deprecated: deprecated, Removed: removed}, Replacement: Use[H](use),
	}
}

// Use returns the kind of the hub in the group/version use, or the zero value if use is "".
func Use[H any](use string) meta.GroupVersionKind {
	if use == "" {
		return meta.GroupVersionKind{}
	}
	gv := meta.ParseAPIVersion(use)
	return meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: reflect.TypeFor[H]().Name()}
}
