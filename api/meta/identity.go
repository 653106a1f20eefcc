package meta

import (
	"fmt"
	"strings"
)

// GroupVersion is a version of an API group. The core group is "".
type GroupVersion struct{ Group, Version string }

// ParseAPIVersion splits the value of an apiVersion field. It does not validate the parts.
func ParseAPIVersion(s string) GroupVersion {
	if g, v, ok := strings.Cut(s, "/"); ok {
		return GroupVersion{g, v}
	}
	return GroupVersion{"", s}
}

// String returns the value of an apiVersion field.
func (gv GroupVersion) String() string {
	if gv.Group == "" {
		return gv.Version
	}
	return gv.Group + "/" + gv.Version
}

// GroupKind is a kind in any version.
type GroupKind struct{ Group, Kind string }

// String returns "Kind.group", or "Kind" in the core group.
func (gk GroupKind) String() string { return dotted(gk.Kind, gk.Group) }

// GroupVersionKind is a version of a kind.
type GroupVersionKind struct{ Group, Version, Kind string }

// APIVersion returns the apiVersion of objects of the kind.
func (k GroupVersionKind) APIVersion() string { return GroupVersion{k.Group, k.Version}.String() }

// GroupKind returns the kind without the version.
func (k GroupVersionKind) GroupKind() GroupKind { return GroupKind{k.Group, k.Kind} }

// String returns "group/version, Kind=kind".
func (k GroupVersionKind) String() string { return k.APIVersion() + ", Kind=" + k.Kind }

// GroupResource is a resource type in any version.
type GroupResource struct{ Group, Resource string }

// String returns "resource.group", or "resource" in the core group.
func (r GroupResource) String() string { return dotted(r.Resource, r.Group) }

// GroupVersionResource is a version of a resource type.
type GroupVersionResource struct{ Group, Version, Resource string }

// GroupResource returns the resource type without the version.
func (r GroupVersionResource) GroupResource() GroupResource {
	return GroupResource{r.Group, r.Resource}
}

// GroupVersion returns the group and the version.
func (r GroupVersionResource) GroupVersion() GroupVersion { return GroupVersion{r.Group, r.Version} }

// String returns "group/version, Resource=resource".
func (r GroupVersionResource) String() string {
	return r.GroupVersion().String() + ", Resource=" + r.Resource
}

// Key identifies an object of a resource type. Namespace is "" for cluster scope.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or "name" for cluster scope.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// ParseKey parses the result of Key.String: "namespace/name", or "name" for cluster scope. It
// does not validate the names.
func ParseKey(s string) (Key, error) {
	namespace, name, both := strings.Cut(s, "/")
	if !both {
		namespace, name = "", s
	}
	if name == "" || both && namespace == "" || strings.Contains(name, "/") {
		return Key{}, fmt.Errorf("%q is not of the form namespace/name or name", s)
	}
	return Key{namespace, name}, nil
}

func dotted(name, group string) string {
	if group == "" {
		return name
	}
	return name + "." + group
}
