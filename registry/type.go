package registry

import "orch.io/controlplane/api/meta"

// Type describes a resource type of a server: a Kind under the server's naming profile. It must not
// be modified.
type Type struct {
	Group, Kind, ListKind, Plural, Singular string // wire names
	ShortNames, Categories                  []string
	Namespaced                              bool
	AllVersions                             []meta.GroupVersion // in order of priority, the most stable first; some may be in another group
	ServedVersions                          []meta.GroupVersion // the versions that clients can use
	HubVersion                              string              // the version in Group in which hooks, admission and clients in the process see objects
	Virtual                                 bool                // objects are not stored, such as reviews
	Closed                                  bool                // creates are rejected, because the CustomResourceDefinition is being deleted
}

// GroupResource returns the group and plural of the type, by wire names.
func (t *Type) GroupResource() meta.GroupResource {
	return meta.GroupResource{Group: t.Group, Resource: t.Plural}
}

// GroupKind returns the group and kind of the type, by wire names.
func (t *Type) GroupKind() meta.GroupKind { return meta.GroupKind{Group: t.Group, Kind: t.Kind} }
